"""Their side of a bill: lines of invoices and results of usage pages."""
