"""Who bears what of a month."""
