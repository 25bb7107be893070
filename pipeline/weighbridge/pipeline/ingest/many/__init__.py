"""Many records at once: lines that differ in nothing but their digits are taken apart once, then read as columns."""
