"""Whether a provider's counts may be accused: statistics with a promised rate of false accusations."""
