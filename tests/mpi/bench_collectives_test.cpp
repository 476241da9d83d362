// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Collectives do what their rows say, bit for bit; and a bit that is not right is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "executor/host/host.hpp"
#include "runner/microbench/benchmark_case.hpp"
#include "tests/mpi/flip_bits.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale::runner {
namespace {

using executor::Trace;
using workloads::Bench;
using workloads::Case;
using workloads::Expectation;

class Collectives : public testing::Test {
 protected:
  /// Builds and prepares, and plays setup.
  void prepare(workloads::Options options) {
    request_.mesh.dp = world_.size();
    request_.options = std::move(options);
    bench_ = workloads::collectives::build(request_, 0);
    expected_.clear();
    for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
      expected_.push_back(workloads::collectives::expect(request_, 0, i, world_.rank()));
    }
    session_ = executor_->prepare(bench_.set, world_);
    session_->play(program::Section::setup, Trace::off);
  }

  void play(const Case& one, std::uint32_t times = 1) {
    if (one.when != workloads::Restore::never) session_->play({.section = one.restore});
    session_->play({.section = one.section, .times = times});
  }

  [[nodiscard]] microbench::Comparison compare(std::size_t index) {
    microbench::Expectations expectations{bench_.set.of(world_.rank()), bench_.set.mesh.size()};
    return expectations.compare(*session_, expected_[index]);
  }

  [[nodiscard]] std::string title(std::size_t index) const {
    const workloads::RowSpec& row = bench_.rows[bench_.cases[index].row_begin];
    std::string text;
    for (const auto& [key, value] : row.text) text += value + " ";
    return fmt::format("{}{} bytes", text, row.number.at("bytes"));
  }

  comm::Communicator world_ = comm::Communicator::world();
  std::unique_ptr<executor::Executor> executor_ = executor::make_host_executor({});
  workloads::Request request_;
  Bench bench_;
  std::vector<std::vector<Expectation>> expected_;
  std::unique_ptr<executor::Session> session_;
};

constexpr const char* all_types = "f64,f32,f16,bf16,i64,i32,i8,u8";

TEST_F(Collectives, AreRightOfEveryOperationTypeAndPlace) {
  // More than two ranks take fewer sizes, or with ISOSCALE_ALL_SIZES all.
  const bool all = world_.size() <= 2 || std::getenv("ISOSCALE_ALL_SIZES") != nullptr;
  prepare({{"sizes", all ? "16..64KiB*16,100KiB" : "16,4KiB,100KiB"},
           {"types", all_types},
           {"reduction", "sum,min,max"},
           {"rotate", "128KiB"},
           {"root", std::to_string(world_.size() - 1)}});
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    play(bench_.cases[i]);
    const microbench::Comparison found = compare(i);
    EXPECT_EQ(found.wrong, 0U) << title(i) << ": " << found.first;
  }
}

TEST_F(Collectives, TextbookAlgorithmsAreRight) {
  prepare({{"sizes", "64..64KiB*16,100KiB"},
           {"types", "f64,f32,i32"},
           {"op", "all_reduce,all_gather,reduce_scatter"},
           {"in_place", "no"},
           {"rotate", "64KiB"},
           {"implementation", "ring,tree,recursive-doubling"}});
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    play(bench_.cases[i], 2);
    const microbench::Comparison found = compare(i);
    EXPECT_GT(found.compared, 0U) << title(i);
    EXPECT_EQ(found.wrong, 0U) << title(i) << ": " << found.first;
  }
}

/// One bit of one element on one rank, in each slice that is compared: the first, a middle and the
/// last element, the lowest and the highest bit.
TEST_F(Collectives, AFlippedBitIsFound) {
  prepare(
      {{"sizes", "256"}, {"types", all_types}, {"reduction", "sum,min,max"}, {"rotate", "512"}});
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    play(bench_.cases[i]);
    std::size_t flipped = 0;
    for (const Expectation& one : expected_[i]) {
      flipped += flip_bits(*session_, bench_.set.of(world_.rank()), one.slice,
                           [&](std::uint64_t at, std::size_t bit) {
                             EXPECT_EQ(compare(i).wrong, 1U)
                                 << title(i) << ": element " << at << ", bit " << bit;
                           });
    }
    EXPECT_EQ(compare(i).wrong, 0U) << title(i);
    const auto& row = bench_.rows[bench_.cases[i].row_begin];
    EXPECT_TRUE(flipped > 0 || row.text.at("op") != "all_reduce");
  }
}

/// Data that was never received is no accident of what was there before.
TEST_F(Collectives, WithoutThePlayEveryOperationIsWrong) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank";
  prepare({{"sizes", "4KiB"},
           {"rotate", "4KiB"},
           {"op", "all_reduce,all_gather,all_to_all,sendrecv"},
           {"in_place", "no"}});
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    session_->play({.section = bench_.cases[i].restore});
    const microbench::Comparison found = compare(i);
    EXPECT_GT(found.wrong, found.compared / 4) << title(i);
  }
}

}  // namespace
}  // namespace isoscale::runner
