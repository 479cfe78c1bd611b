"""DataLoaders: what they draw, with which workers, and which loops go over them; files and settings that programs are started
with, and by what.
"""
