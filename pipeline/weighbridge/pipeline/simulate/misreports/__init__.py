"""Ways of billing, honest ones first: one file each, `MISREPORT`."""
