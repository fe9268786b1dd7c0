"""Packed weight formats, written from their layouts: packers, unpackers and what the numbers mean. Plain torch only.

Codes (the integers that a format stores) are int64 tensors, indexed as the weight matrix is: ``(k, n)`` with k along
the sum of a matrix product. A packer and its unpacker are inverse to each other for every code that fits.
"""
