// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "executor/host/communicators.hpp"
#include "executor/host/host.hpp"
#include "executor/host/resources.hpp"
#include "executor/resolver.hpp"

namespace isoscale::executor::host {
namespace {

TEST(Cores, ABoundRankHasThoseItIsBoundTo) {
  EXPECT_EQ(cores_of_rank(1, 64, 8, {}), 1);
  EXPECT_EQ(cores_of_rank(8, 64, 8, {}), 8);
  EXPECT_EQ(cores_of_rank(4, 64, 8, {}), 4);
}

TEST(Cores, RanksThatAreNotBoundShareTheNode) {
  EXPECT_EQ(cores_of_rank(64, 64, 8, {}), 8);
  EXPECT_EQ(cores_of_rank(32, 64, 8, {}), 4);  // bound to one of two sockets
  EXPECT_EQ(cores_of_rank(2, 2, 4, {}), 1);
  EXPECT_EQ(cores_of_rank(2, 2, 1, {}), 2);
}

TEST(Cores, AQuotaIsSharedByTheRanksOfTheNode) {
  EXPECT_EQ(cores_of_rank(64, 64, 8, 16.0), 2);
  EXPECT_EQ(cores_of_rank(64, 64, 8, 15.9), 1);
  EXPECT_EQ(cores_of_rank(64, 64, 1, 2.0), 2);
  EXPECT_EQ(cores_of_rank(64, 64, 1, 1.5), 1);
  EXPECT_EQ(cores_of_rank(8, 64, 8, 16.0), 2);  // bound, too
  EXPECT_EQ(cores_of_rank(64, 64, 8, 0.5), 1);
  EXPECT_EQ(cores_of_rank(4, 64, 8, 1e12), 4);
}

TEST(Storage, IsZeroedAndAligned) {
  const Storage storage = allocate(units::Bytes{10'000});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.get().address) % 4096, 0U);
  for (std::size_t i = 0; i < 10'000; ++i) EXPECT_EQ(storage.get().address[i], std::byte{0});
  EXPECT_FALSE(static_cast<bool>(allocate(units::Bytes{0})));
}

TEST(Storage, FailureNamesNeedAndFree) {
  try {
    std::ignore = allocate(units::Bytes{std::uint64_t{1} << 60});
    ADD_FAILURE() << "an EiB was allocated";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("cannot allocate"), testing::HasSubstr("free")));
  }
}

TEST(MergedCopy, IsAsFewPiecesAsPossible) {
  const StridedCopy dense{.row_bytes = 8,
                          .rows = 3,
                          .batch = 2,
                          .src_row = 8,
                          .src_batch = 24,
                          .dst_row = 8,
                          .dst_batch = 24};
  EXPECT_EQ(merged(dense).row_bytes, 48U);
  EXPECT_EQ(merged(dense).rows * merged(dense).batch, 1U);
  StridedCopy apart = dense;
  apart.dst_batch = 30;
  EXPECT_EQ(merged(apart).row_bytes, 24U);
  EXPECT_EQ(merged(apart).rows * merged(apart).batch, 2U);
  StridedCopy padded = dense;
  padded.src_row = 10;
  EXPECT_EQ(merged(padded).row_bytes, 8U);
}

program::Op op(program::Payload payload, program::StreamId stream) {
  return {.payload = std::move(payload), .place = {}, .stream = stream};
}

TEST(CommunicationNeeds, AreTheUnionOverAllProgramsInOneOrder) {
  using mesh::Axis;
  const program::Collective over_dp{.axes = Axis::dp}, over_tp{.axes = Axis::tp};
  const program::Exchange up{{{program::Direction::send, Axis::pp, 1, {}}}};
  const program::Exchange from_above{{{program::Direction::receive, Axis::pp, 1, {}}}};
  program::RankProgram first, second;
  first.step().ops = {op(over_dp, 1), op(over_tp, 0), op(over_dp, 1), op(up, 2)};
  second.setup.ops = {op(over_dp, 0)};
  second.step().ops = {op(over_tp, 0), op(from_above, 3)};
  const auto needs =
      communication_needs({.mesh = {}, .programs = {first, second}, .program_of_rank = {}});
  const auto swapped =
      communication_needs({.mesh = {}, .programs = {second, first}, .program_of_rank = {}});
  EXPECT_THAT(needs.collectives,
              testing::ElementsAre(std::pair{mesh::AxisSet{Axis::tp}, program::StreamId{0}},
                                   std::pair{mesh::AxisSet{Axis::dp}, program::StreamId{0}},
                                   std::pair{mesh::AxisSet{Axis::dp}, program::StreamId{1}}));
  EXPECT_EQ(needs.collectives, swapped.collectives);
  // A receive from above is a send to below, seen by its sender.
  EXPECT_THAT(needs.exchanges,
              testing::ElementsAre(testing::Pair(Axis::pp, testing::ElementsAre(-1, 1))));
  EXPECT_EQ(needs.exchanges, swapped.exchanges);
}

TEST(HostExecutor, DescribesItself) {
  const auto executor = make_host_executor({});
  const Description& description = executor->describe();
  EXPECT_EQ(description.name, "host");
  EXPECT_THAT(description.detail, testing::HasSubstr("1 thread"));
  EXPECT_THAT(description.precisions,
              testing::UnorderedElementsAre(program::Precision::f32, program::Precision::f64));
  EXPECT_GE(description.cores, 1);
  EXPECT_GT(description.memory_free.value().value(), 0U);
  EXPECT_EQ(description.memory_pool, MemoryPool::node);
}

TEST(HostExecutor, RefusesImpossibleOptions) {
  EXPECT_THROW(std::ignore = make_host_executor({.blas_threads = 0}), base::UsageError);
  EXPECT_THROW(std::ignore = make_host_executor({.elements_per_call = 0}), base::UsageError);
  EXPECT_THROW(std::ignore = make_host_executor({.elements_per_call = std::uint64_t{1} << 31}),
               base::UsageError);
}

TEST(Blas, KernelsThatAreOlderThanTheCpuAreSaid) {
  using host::kernel_warning, host::Vectors;
  EXPECT_EQ(kernel_warning("SkylakeX", Vectors::avx512), "");
  EXPECT_EQ(kernel_warning("Haswell", Vectors::avx2), "");
  EXPECT_EQ(kernel_warning("Prescott", Vectors::unknown), "");
  EXPECT_NE(kernel_warning("Prescott", Vectors::avx512).find("OPENBLAS_CORETYPE=SkylakeX"),
            std::string::npos);
  EXPECT_NE(kernel_warning("Nehalem", Vectors::avx2).find("OPENBLAS_CORETYPE=Haswell"),
            std::string::npos);
}

}  // namespace
}  // namespace isoscale::executor::host
