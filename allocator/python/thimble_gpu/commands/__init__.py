"""Sub-commands of `thimble`: add_to() tells the command line about one."""
