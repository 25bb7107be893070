"""Charges of providers: invoices and cost exports as rows of `invoice_line`, whatever their shape."""
