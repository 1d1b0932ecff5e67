"""Every built cause on facts where it fires, where it stays silent, and where nothing was
measured.
"""
