"""The overview: attempts and reports by tenant, model and outcome, with exact sums and the exact 95th percentile."""
