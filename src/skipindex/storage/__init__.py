"""Bytes on disk: file systems, packs of index payloads, manifests, commits.

Nothing here knows what a payload means; nothing outside knows how it is framed.
"""
