"""The look that every page of the product has: one style sheet, and the policy that lets nothing else into a page."""
