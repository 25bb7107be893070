"""Prices: the dated book, and what a reading costs at the price of its day, exactly."""
