// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh and precision computes on GPUs what one rank computes on the host.

#include "tests/cuda/twin_requests.hpp"
#include "tests/gpu/gpus.hpp"

namespace isoscale::gpu_tests {
namespace {

using program::Precision;

class Twins : public testing::TestWithParam<settings::Graph> {};

TEST_P(Twins, OfEveryMeshAndPrecisionOfTheChip) {
  const comm::Communicator world = comm::Communicator::world();
  const auto cuda = make_executor(world, GetParam());
  const std::vector<Precision>& able = cuda->describe().precisions;
  std::size_t turn = 0, played = 0;
  for (const mesh::Shape& mesh : gpu_twins::meshes(world.size())) {
    for (const Precision precision : gpu_twins::precisions) {
      const auto options = gpu_twins::option_sets();
      const workloads::Options& set = options[turn++ % options.size()];
      const auto request = gpu_twins::request_of(mesh, precision, set);
      const bool can = std::ranges::find(able, precision) != able.end();
      if (!request || !can) continue;
      gpu_twins::expect_equal_to_one_rank(world, *cuda, *request);
      ++played;
    }
  }
  EXPECT_GT(played, 0U);
}

TEST_P(Twins, OfFp8RowsThatTravelInParts) {
  const comm::Communicator world = comm::Communicator::world();
  const auto cuda = make_executor(world, GetParam());
  const std::vector<Precision>& able = cuda->describe().precisions;
  if (std::ranges::find(able, Precision::fp8) == able.end()) GTEST_SKIP() << "no fp8";
  const std::vector<workloads::Request> requests = gpu_twins::fp8_rows(world.size());
  if (requests.empty()) GTEST_SKIP() << "too few rows for so many ranks";
  for (const workloads::Request& request : requests) {
    gpu_twins::expect_equal_to_one_rank(world, *cuda, request);
  }
}

INSTANTIATE_TEST_SUITE_P(Plays, Twins, testing::Values(settings::Graph::off, settings::Graph::on),
                         [](const auto& one) {
                           return one.param == settings::Graph::on ? "graph" : "plain";
                         });

}  // namespace
}  // namespace isoscale::gpu_tests
