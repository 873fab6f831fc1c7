"""The commands, one file each: the arguments at the top, the work imported when the command is invoked."""
