#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 200
# The packet plane's tests once more, with a gateway that packs whatever an operation costs.
export RGATE_PLANE_PACKED=1
exec "$RGATE_BUILD/tests/net/test_plane"
