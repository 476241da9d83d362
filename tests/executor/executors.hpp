// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor {

/// A back end that the tests of this folder run on.
struct Backend {
  std::string name;
  std::unique_ptr<Executor> (*make)();
  bool mixes_wide_types = true;  ///< has updates with f64 beside f32
};
/// Those of a test program, which defines both functions.
[[nodiscard]] std::vector<Backend> backends();
/// Of these, those that play programs in f16, bf16, tf32 and fp8.
[[nodiscard]] std::vector<Backend> narrow_backends();

/// Parameter of all tests that every executor must pass.
class EachExecutor : public testing::TestWithParam<Backend> {
 protected:
  /// A session of one rank. It has played nothing yet.
  std::unique_ptr<Session> prepare(const Sketch& sketch) {
    return executor_->prepare(sketch.on({}), self_);
  }

  std::unique_ptr<Executor> executor_ = GetParam().make();
  comm::Communicator self_ = comm::Communicator::world().split(0, 0);
};

inline std::string name_of(const testing::TestParamInfo<Backend>& info) { return info.param.name; }

inline auto each_backend() { return testing::ValuesIn(backends()); }
inline auto each_narrow_backend() { return testing::ValuesIn(narrow_backends()); }

}  // namespace isoscale::executor
