"""The causes of a gap: one file each, each declares one `CAUSE`."""
