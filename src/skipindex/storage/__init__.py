"""Bytes on disk: file systems, packs of index payloads, manifests, commits.

This package does not know what a payload means, and no other knows its framing.
"""
