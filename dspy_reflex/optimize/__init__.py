"""The compile wing: the only room that imports DSPy. Needs the extra [compile]."""
