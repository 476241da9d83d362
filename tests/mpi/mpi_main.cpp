// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// main() of test programs that run as several ranks. Every rank runs every test; the run fails when
// any rank fails. Assertions between collective calls must not be fatal (EXPECT, not ASSERT): a
// rank that leaves a test early leaves the others waiting, until ctest ends them all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/log.hpp"
#include "comm/world.hpp"

namespace {

/// Tells what failed on a rank other than 0, and nothing else.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto* const file = result.file_name() == nullptr ? "unknown file" : result.file_name();
    isoscale::base::warn(
        fmt::format("rank {}: {}:{}: {}", rank_, file, result.line_number(), result.message()));
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    isoscale::base::warn(
        fmt::format("rank {}: FAILED {}.{}", rank_, test.test_suite_name(), test.name()));
  }

  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const isoscale::comm::Environment environment{&argc, &argv};
  const auto world = isoscale::comm::Communicator::world();
  if (world.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    const std::unique_ptr<testing::TestEventListener> silenced{
        listeners.Release(listeners.default_result_printer())};
    listeners.Append(std::make_unique<FailurePrinter>(world.rank()).release());
  }
  const int failed = RUN_ALL_TESTS();
  return world.all_max(static_cast<double>(failed)) > 0 ? 1 : 0;
}
