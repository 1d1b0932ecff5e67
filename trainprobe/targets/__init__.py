"""Who the ranks are and how they are reached: the target's interpreter, the user's script, the
environment of a launch.
"""
