// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/warn.hpp"
#include "comm/communicator.hpp"

namespace isoscale {

/// Tells what failed on a rank other than 0, and nothing else.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto* const file = result.file_name() == nullptr ? "unknown file" : result.file_name();
    base::warn(
        fmt::format("rank {}: {}:{}: {}", rank_, file, result.line_number(), result.message()));
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    base::warn(fmt::format("rank {}: FAILED {}.{}", rank_, test.test_suite_name(), test.name()));
  }

  int rank_;
};

/// Collective: runs all tests; 1 on all ranks when one failed on any, else 0.
inline int run_all_tests(const comm::Communicator& world) {
  if (world.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    const std::unique_ptr<testing::TestEventListener> silenced{
        listeners.Release(listeners.default_result_printer())};
    listeners.Append(std::make_unique<FailurePrinter>(world.rank()).release());
  }
  const int failed = RUN_ALL_TESTS();
  return world.all_max(static_cast<double>(failed)) > 0 ? 1 : 0;
}

}  // namespace isoscale
