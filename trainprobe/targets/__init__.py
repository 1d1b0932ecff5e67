"""Who the ranks are and how to reach them: interpreter, script, environment of a launch."""
