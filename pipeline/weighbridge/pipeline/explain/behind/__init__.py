"""What lies behind the findings of each room, and behind its sheets: a file here declares one `BEHIND`."""
