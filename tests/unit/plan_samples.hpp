// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "tests/support/options.hpp"

namespace isoscale::samples {

/// h = 16, 8 heads, f = 64, 4 layers; batch 2 x 8.
inline workloads::Request planned_request() {
  return {.model = workloads::test_model(
              "hidden=16 ffn=64 heads=8 head_size=2 layers=4 sequence=4 vocabulary=32"),
          .options = {{"microbatch", "2"}, {"microbatches", "8"}}};
}

}  // namespace isoscale::samples
