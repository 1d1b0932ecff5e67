"""Healthy training programs as people write them, with holes where something may go wrong."""
