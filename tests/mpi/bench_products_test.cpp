// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The products that gemm and overlap compute are compared bit for bit; a wrong bit is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "runner/microbench/benchmark_case.hpp"
#include "tests/executor/emulating_executor.hpp"
#include "tests/mpi/flip_bits.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/overlap/overlap.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using workloads::Bench;
using workloads::Case;

class Products : public testing::Test {
 protected:
  void prepare(Bench (*build)(const workloads::Request&, int), workloads::Options options,
               Precision precision = Precision::f32) {
    request_.mesh.dp = world_.size();
    request_.precision = precision;
    request_.options = std::move(options);
    bench_ = build(request_, 0);
    session_ = executor_->prepare(bench_.set, world_);
    session_->play(program::Section::setup, executor::Trace::off);
  }

  void make_inputs(const Case& one) { session_->play({.section = one.check->section}); }
  void play(const Case& one) {
    make_inputs(one);
    session_->play({.section = one.section});
  }

  [[nodiscard]] microbench::Comparison compare(std::span<const program::Gemm> products) {
    return expectations().compare(*session_, products);
  }
  [[nodiscard]] microbench::Comparison compare(std::span<const workloads::Expectation> expected) {
    return expectations().compare(*session_, expected);
  }
  [[nodiscard]] microbench::Expectations expectations() const {
    return {bench_.set.of(world_.rank()), bench_.set.mesh.size()};
  }

  /// Adds the results of every case, each right.
  std::uint64_t compare_all() {
    std::uint64_t compared = 0;
    for (const Case& one : bench_.cases) {
      play(one);
      const microbench::Comparison found = compare(one.check->products);
      compared += found.compared;
      const auto& row = bench_.rows[one.row_begin];
      EXPECT_EQ(found.wrong, 0U) << fmt::format("{} x {} x {}: {}", row.number.at("m"),
                                                row.number.at("n"), row.number.at("k"),
                                                found.first);
    }
    return compared;
  }

  comm::Communicator world_ = comm::Communicator::world();
  std::unique_ptr<executor::Executor> executor_ = executor::make_emulating_executor();
  workloads::Request request_;
  Bench bench_;
  std::unique_ptr<executor::Session> session_;
};

constexpr const char* shapes = "1x1x1,31x29x7,64x48x16x3,30x100x33,16x16x2048";

TEST_F(Products, AreRightInEveryPrecision) {
  for (const Precision precision :
       {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
    SCOPED_TRACE(name(precision));
    prepare(workloads::gemm::build, {{"shapes", shapes}, {"rotate", "64KiB"}}, precision);
    EXPECT_EQ(compare_all(), 2U * (1 + 31 * 29 + 64 * 48 * 3 + 30 * 100 + 16 * 16));
  }
}

/// A training step multiplies transposed operands and, in fp8, operands of two types.
TEST_F(Products, AreRightWithTheTransposesOfATrainingStep) {
  request_.model = workloads::load_model("tiny");
  for (const Precision precision : {Precision::f64, Precision::fp8}) {
    SCOPED_TRACE(name(precision));
    prepare(workloads::gemm::build, {{"shapes", "model"}, {"cache", "warm"}}, precision);
    std::set<std::string> layouts;
    for (const auto& row : bench_.rows) layouts.insert(row.text.at("layout"));
    EXPECT_GE(layouts.size(), 2U);
    EXPECT_GT(compare_all(), 0U);
  }
}

/// The first, a middle and the last element, the lowest and the highest bit.
TEST_F(Products, AFlippedBitIsFound) {
  prepare(workloads::gemm::build, {{"shapes", shapes}, {"rotate", "64KiB"}}, Precision::bf16);
  for (const Case& one : bench_.cases) {
    play(one);
    const program::Slice all = one.check->products.front().d.slice;
    flip_bits(*session_, bench_.set.of(world_.rank()), all, [&](std::uint64_t at, std::size_t) {
      const microbench::Comparison found = compare(one.check->products);
      EXPECT_EQ(found.wrong, 1U);
      EXPECT_EQ(found.first, fmt::format("element {}", at));
    });
  }
}

TEST_F(Products, WithoutThePlayEveryElementIsWrong) {
  prepare(workloads::gemm::build, {{"shapes", shapes}, {"rotate", "64KiB"}});
  for (const Case& one : bench_.cases) {
    play(one);
    make_inputs(one);
    const microbench::Comparison found = compare(one.check->products);
    EXPECT_EQ(found.wrong, found.compared);
  }
}

TEST_F(Products, OverlapComparesBothParts) {
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    SCOPED_TRACE(op);
    prepare(workloads::overlap::build, {{"op", op},
                                        {"shapes", "64x48x16,31x29x7"},
                                        {"sizes", "4KiB,300KiB"},
                                        {"multiplications", "2"}});
    for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
      const Case& one = bench_.cases[i];
      const auto expected = workloads::overlap::expect(request_, 0, i, world_.rank());
      const bool multiplies = i % 3 != 1, communicates = i % 3 != 0;
      EXPECT_EQ(one.check->products.size(), multiplies ? 2U : 0U);
      EXPECT_EQ(expected.empty(), !communicates);
      play(one);
      EXPECT_EQ(compare(one.check->products).wrong, 0U);
      EXPECT_EQ(compare(expected).wrong, 0U);
      make_inputs(one);
      const microbench::Comparison products = compare(one.check->products),
                                   received = compare(expected);
      EXPECT_EQ(products.wrong, products.compared);
      EXPECT_EQ(received.wrong, received.compared);
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
