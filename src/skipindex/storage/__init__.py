"""Bytes on disk: file systems, packs of index payloads, checked objects, deadlines.

This package does not know what a payload means, nor which files make up a table.
"""
