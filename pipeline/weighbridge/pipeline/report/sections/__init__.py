"""The sections of the report: one file each, each declares one `SECTION`."""
