"""What passes over the wire between a client and a model API: which API, what was asked, what was answered."""
