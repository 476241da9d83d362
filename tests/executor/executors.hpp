// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/unit/matchers.hpp"

namespace isoscale::executor {

/// A back end that the tests of this folder run on.
struct Backend {
  std::string name;
  std::unique_ptr<Executor> (*make)();
  bool mixes_wide_types = true;  ///< has updates with f64 beside f32
  /// Those that ops which compute are tried in.
  std::vector<program::DType> floats{program::DType::f64, program::DType::f32, program::DType::f16,
                                     program::DType::bf16};
};
/// A test program defines these: executors under test, and those that play narrow types and tf32.
[[nodiscard]] std::vector<Backend> backends();
[[nodiscard]] std::vector<Backend> narrow_backends();

/// Parameter of all tests that every executor must pass.
class EachExecutor : public testing::TestWithParam<Backend> {
 protected:
  /// A session of one rank. It has played nothing yet.
  SessionPtr prepare(const Sketch& sketch) { return executor_->prepare(sketch.on({}), self_); }
  /// A session that has played its step once, on these contents of its buffers.
  template <class... Contents>
  SessionPtr played(const Sketch& sketch, const Contents&... contents) {
    auto session = prepare(sketch);
    (put(*session, contents.slice, contents.values), ...);
    session->play({.section = program::Section::step});
    return session;
  }
  /// Expects that a sketch is refused as `make` writes it.
  template <class Make>
  void expect_refused(const Make& make) {
    Sketch sketch;
    make(sketch);
    EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error);
  }

  std::unique_ptr<Executor> executor_ = GetParam().make();
  comm::Communicator self_ = comm::Communicator::world().split(0, 0);
};

template <class T>
struct Contents {
  program::Slice slice;
  std::vector<T> values;
};
template <class T>
Contents<T> with(const program::Slice& slice, std::vector<T> values) {
  return {slice, std::move(values)};
}
/// The values, rounded to the type of the slice.
inline Contents<std::byte> with(const program::Slice& slice, program::DType type,
                                const std::vector<double>& values) {
  return {slice, stored(type, values)};
}

inline std::string name_of(const testing::TestParamInfo<Backend>& info) { return info.param.name; }

inline auto each_backend() { return testing::ValuesIn(backends()); }
inline auto each_narrow_backend() { return testing::ValuesIn(narrow_backends()); }
/// All of both, each once.
inline auto every_backend() {
  std::vector<Backend> all = backends();
  for (const Backend& narrow : narrow_backends()) {
    if (std::ranges::find(all, narrow.name, &Backend::name) == all.end()) all.push_back(narrow);
  }
  return testing::ValuesIn(all);
}

}  // namespace isoscale::executor
