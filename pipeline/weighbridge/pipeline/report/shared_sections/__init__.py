"""The sections of the shared edition: one file each, each declares one `SECTION`, and reads shared tables alone."""
