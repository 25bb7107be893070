"""What can be explained: a file here declares one `KIND`, with how it is found and what lies behind it."""
