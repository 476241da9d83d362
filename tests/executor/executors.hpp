// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "comm/world.hpp"
#include "executor/host/host.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor {

/// A back end that the tests of this folder run on. A new one is a new row of the table below.
struct Backend {
  std::string name;
  std::unique_ptr<Executor> (*make)();
};

inline std::unique_ptr<Executor> make_host() { return make_host_executor({}); }

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

inline auto each_backend() { return testing::Values(Backend{.name = "host", .make = make_host}); }

inline std::unique_ptr<Executor> make_emulating_host() {
  return make_host_executor({.narrow = NarrowTypes::emulated});
}

/// Those that play programs in f16, bf16, tf32 and fp8.
inline auto each_narrow_backend() {
  return testing::Values(Backend{.name = "emulating_host", .make = make_emulating_host});
}

}  // namespace isoscale::executor
