"""A batch script and a site, read and compared before the script is submitted. Pure: nothing is
run and nobody is asked.
"""
