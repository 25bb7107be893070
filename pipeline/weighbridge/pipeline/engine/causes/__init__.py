"""Why an engine counted more, or less, than its attempts add up to: one file each, each declares one `CAUSE`."""
