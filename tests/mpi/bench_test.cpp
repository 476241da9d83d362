// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Micro-benchmarks compare what they give bit by bit, and find a bit that is not right.

#include "executor/host/host_executor.hpp"
#include "runner/microbench/measure_case.hpp"
#include "runner/microbench/rows_and_link_classes.hpp"
#include "tests/executor/emulating_executor.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/overlap/overlap.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using workloads::Bench;
using workloads::Case;
using workloads::Expectation;

class Benchmarks : public testing::Test {
 protected:
  /// Builds and prepares a benchmark for all ranks, and plays setup.
  void prepare(Bench (*build)(const workloads::Request&, int), const std::string& options,
               Precision precision = Precision::f32) {
    request_.mesh.dp = world_.size();
    request_.precision = precision;
    request_.options = workloads::options_of(options);
    bench_ = build(request_, 0);
    session_ = executor_->prepare(bench_.set, world_);
    session_->play({.section = program::Section::setup});
    expectations_.emplace(bench_.set.of(world_.rank()), bench_.set.mesh.size());
  }

  void restore(const Case& one) {
    if (one.check) {
      session_->play({.section = one.check->section});
    } else if (one.when != workloads::Restore::never) {
      session_->play({.section = one.restore});
    }
  }
  void play(const Case& one, std::uint32_t times = 1) {
    restore(one);
    session_->play({.section = one.section, .times = times});
  }

  /// Compares the results with products, or with the expected data of a collective.
  template <class Expected>
  [[nodiscard]] microbench::Comparison compare(const Expected& expected) {
    return expectations_->compare(*session_, std::span{expected});
  }
  /// Expects that nothing is wrong; returns how many elements were compared.
  template <class Expected>
  std::uint64_t expect_right(const Case& one, const Expected& expected) {
    const microbench::Comparison found = compare(expected);
    EXPECT_EQ(found.wrong, 0U) << title(one) << ": " << found.first;
    return found.compared;
  }

  /// Flips the lowest and the highest bit of the first, the middle and the last element in turn.
  template <class Expected>
  void expect_flips_are_found(const Case& one, const program::Slice& slice,
                              const Expected& expected, bool is_named) {
    const auto& buffers = bench_.set.of(world_.rank()).buffers;
    const std::size_t size = program::element_size(buffers[slice.buffer].dtype);
    for (const std::uint64_t at : {std::uint64_t{0}, slice.count / 2, slice.count - 1}) {
      program::Slice element = slice;
      element.offset += at;
      element.count = 1;
      std::vector<std::byte> right(size);
      session_->read(element, right);
      for (const std::size_t bit : {std::size_t{0}, size * 8 - 1}) {
        std::vector<std::byte> wrong = right;
        wrong[bit / 8] ^= std::byte{1} << (bit % 8);
        session_->write(element, wrong);
        const microbench::Comparison found = compare(expected);
        EXPECT_EQ(found.wrong, 1U) << title(one) << ": element " << at << ", bit " << bit;
        if (is_named) {
          EXPECT_EQ(found.first, fmt::format("element {}", at));
        }
      }
      session_->write(element, right);
    }
  }

  [[nodiscard]] std::string title(const Case& one) const {
    return microbench::title_of(bench_.rows[one.row_begin]);
  }

  comm::Communicator world_ = comm::Communicator::world();
  std::unique_ptr<executor::Executor> executor_ = executor::make_emulating_executor();
  workloads::Request request_;
  Bench bench_;
  executor::SessionPtr session_;
  std::optional<microbench::Expectations> expectations_;  ///< computes each table once
};

class Collectives : public Benchmarks {
 protected:
  Collectives() { executor_ = executor::make_host_executor({}); }

  void prepare(const std::string& options) {
    Benchmarks::prepare(workloads::collectives::hooks().build, options, request_.precision);
  }
  [[nodiscard]] std::vector<Expectation> expected(std::size_t index) const {
    return workloads::collectives::hooks().expect(request_, 0, index, world_.rank());
  }
};

constexpr const char* all_types = "types=f64,f32,f16,bf16,i64,i32,i8,u8 reduction=sum,min,max";

/// More than two ranks take fewer sizes and types, or with ISOSCALE_ALL_SIZES all.
bool takes_all(int ranks) { return ranks <= 2 || std::getenv("ISOSCALE_ALL_SIZES") != nullptr; }

TEST_F(Collectives, AreRightOfEveryOperationTypeAndPlace) {
  prepare(fmt::format("sizes={} {} rotate=128KiB root={}",
                      takes_all(world_.size()) ? "16..64KiB*16,100KiB" : "16,4KiB,100KiB",
                      all_types, world_.size() - 1));
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    play(bench_.cases[i]);
    expect_right(bench_.cases[i], expected(i));
  }
}

TEST_F(Collectives, TextbookAlgorithmsAreRight) {
  prepare(
      "sizes=64..64KiB*16,100KiB types=f64,f32,i32 op=all_reduce,all_gather,reduce_scatter "
      "in_place=no rotate=64KiB implementation=ring,tree,recursive-doubling");
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    play(bench_.cases[i], 2);
    EXPECT_GT(expect_right(bench_.cases[i], expected(i)), 0U);
  }
}

TEST_F(Collectives, AFlippedBitIsFound) {
  prepare(fmt::format("sizes=256 rotate=512 {}",
                      takes_all(world_.size()) ? all_types : "types=f32,bf16,i8 reduction=max"));
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    const Case& one = bench_.cases[i];
    play(one);
    for (const Expectation& of : expected(i)) {
      expect_flips_are_found(one, of.slice, expected(i), false);
    }
    expect_right(one, expected(i));
    const bool reduces = bench_.rows[one.row_begin].text.at("op") == "all_reduce";
    EXPECT_FALSE(reduces && expected(i).empty());
  }
}

/// Data that was never received is no accident of what was there before.
TEST_F(Collectives, WithoutThePlayEveryOperationIsWrong) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank";
  prepare("sizes=4KiB rotate=4KiB op=all_reduce,all_gather,all_to_all,sendrecv in_place=no");
  for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
    session_->play({.section = bench_.cases[i].restore});
    const microbench::Comparison found = compare(expected(i));
    EXPECT_GT(found.wrong, found.compared / 4) << title(bench_.cases[i]);
  }
}

class Products : public Benchmarks {
 protected:
  void prepare(const std::string& options, Precision precision = Precision::f32) {
    Benchmarks::prepare(workloads::gemm::hooks().build, options, precision);
  }
  /// Adds the results of every case, each right.
  std::uint64_t compare_all() {
    std::uint64_t compared = 0;
    for (const Case& one : bench_.cases) {
      play(one);
      compared += expect_right(one, one.check->products);
    }
    return compared;
  }
};

constexpr const char* shapes = "shapes=1x1x1,31x29x7,64x48x16x3,30x100x33,16x16x2048 rotate=64KiB";

TEST_F(Products, AreRightInEveryPrecision) {
  for (const Precision precision :
       {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
    SCOPED_TRACE(name(precision));
    prepare(shapes, precision);
    EXPECT_EQ(compare_all(), 2U * (1 + 31 * 29 + 64 * 48 * 3 + 30 * 100 + 16 * 16));
  }
}

/// A library that multiplies f32 in tf32 is found out.
TEST_F(Products, InTf32AreWrongWhereF32IsAskedFor) {
  prepare("shapes=31x29x7,30x100x33,64x64x8192 cache=warm");
  for (program::RankProgram& program : bench_.set.programs) {
    for (program::Program& step : program.steps) {
      for (program::Op& op : step.ops) {
        auto* const gemm = std::get_if<program::Gemm>(&op.payload);
        if (gemm != nullptr) gemm->mode = program::ComputeMode::tf32;
      }
    }
  }
  session_ = executor_->prepare(bench_.set, world_);
  session_->play({.section = program::Section::setup});
  for (const Case& one : bench_.cases) {
    play(one);
    const microbench::Comparison found = compare(one.check->products);
    EXPECT_GT(found.wrong, found.compared / 2) << title(one);
  }
}

/// A training step multiplies transposed operands and, in fp8, operands of two types.
TEST_F(Products, AreRightWithTheTransposesOfATrainingStep) {
  request_.model = workloads::load_model("tiny");
  for (const Precision precision : {Precision::f64, Precision::fp8}) {
    SCOPED_TRACE(name(precision));
    prepare("shapes=model cache=warm", precision);
    std::set<std::string> layouts;
    for (const auto& row : bench_.rows) layouts.insert(row.text.at("layout"));
    EXPECT_GE(layouts.size(), 2U);
    EXPECT_GT(compare_all(), 0U);
  }
}

TEST_F(Products, AFlippedBitIsFound) {
  prepare(shapes, Precision::bf16);
  for (const Case& one : bench_.cases) {
    play(one);
    const auto& products = one.check->products;
    expect_flips_are_found(one, products.front().d.slice, products, true);
  }
}

TEST_F(Products, WithoutThePlayEveryElementIsWrong) {
  prepare(shapes);
  for (const Case& one : bench_.cases) {
    play(one);
    restore(one);
    const microbench::Comparison found = compare(one.check->products);
    EXPECT_EQ(found.wrong, found.compared);
  }
}

TEST_F(Products, OverlapComparesBothParts) {
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    SCOPED_TRACE(op);
    Benchmarks::prepare(workloads::overlap::hooks().build,
                        fmt::format("op={} shapes=64x48x16,31x29x7 sizes=4KiB,300KiB "
                                    "multiplications=2",
                                    op));
    for (std::size_t i = 0; i < bench_.cases.size(); ++i) {
      const Case& one = bench_.cases[i];
      const auto expected = workloads::overlap::hooks().expect(request_, 0, i, world_.rank());
      const bool multiplies = i % 3 != 1, communicates = i % 3 != 0;
      EXPECT_EQ(one.check->products.size(), multiplies ? 2U : 0U);
      EXPECT_EQ(expected.empty(), !communicates);
      play(one);
      expect_right(one, one.check->products);
      expect_right(one, expected);
      restore(one);
      const auto products = compare(one.check->products), received = compare(expected);
      EXPECT_EQ(products.wrong, products.compared);
      EXPECT_EQ(received.wrong, received.compared);
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
