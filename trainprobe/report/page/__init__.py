"""The page: one HTML file with everything that a report knows, without a link to elsewhere."""
