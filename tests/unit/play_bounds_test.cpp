// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How long a play is, by device, and what a GPU's cache asks of cold multiplications.
#include <gtest/gtest.h>

#include "runner/microbench/benchmark_case.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale::workloads {
namespace {

constexpr units::Bytes cache{std::uint64_t{60} << 20U};
PlayBounds of(std::string_view device) {
  return play_bounds({.device = device, .numa_nodes = 1, .gpu_cache = cache});
}

/// The passes that a play has in a run with a budget of ten seconds.
std::uint64_t passes(const Case& one, double pass, std::string_view device) {
  return runner::microbench::passes_of_play(
      one, units::Seconds{pass},
      {.budget = units::Seconds{10}, .timeout = {}, .bounds = of(device)});
}

TEST(PlayBounds, OfTheHostLeaveACaseAsItIs) {
  EXPECT_EQ(of("host"), PlayBounds{});
  EXPECT_EQ(passes({.most_times = 7}, 3e-6, "host"), 7);
  EXPECT_EQ(passes({.most_times = 7}, 0.25, "host"), 2);  // 20 plays in the budget
  EXPECT_EQ(passes({.most_times = 1}, 3e-6, "host"), 1);
}

TEST(PlayBounds, OfAGpuAskForTwoMillisecondsOrTwentyCalls) {
  EXPECT_EQ(passes({.most_times = 1}, 50e-6, "cuda"), 20);
  EXPECT_EQ(passes({.most_times = 1}, 300e-6, "cuda"), 7);
  EXPECT_EQ(passes({.calls = 4, .most_times = 1}, 100e-6, "cuda"), 5);
  EXPECT_EQ(passes({.most_times = 1}, 5e-3, "cuda"), 1);
  EXPECT_EQ(passes({.most_times = 30}, 50e-6, "cuda"), 30);
  EXPECT_EQ(passes({.most_times = 1, .repeat = Repeat::never}, 50e-6, "cuda"), 1);
}

TEST(PlayBounds, OfAGpuKeepShortCallsAheadOfTheHost) {
  EXPECT_EQ(passes({.most_times = 1024}, 3e-6, "cuda"), 64);
  EXPECT_EQ(passes({.calls = 16, .most_times = 1024}, 48e-6, "cuda"), 4);
  EXPECT_EQ(passes({.calls = 500, .most_times = 1024}, 1.5e-3, "cuda"), 1);
}

std::vector<RowSpec> gemm_rows(std::string_view device, Options options) {
  Request request{.mesh = {}, .precision = Precision::f32, .options = std::move(options)};
  request.bounds = of(device);
  return gemm::hooks().build(request, 0).rows;
}

TEST(PlayBounds, ColdMultiplicationsGoThroughTwiceTheCacheOfAGpu) {
  const double wanted = 2.0 * static_cast<double>(cache.value());
  for (const std::string size : {"512", "1024", "2048", "8192"}) {
    const Options options{{"shapes", size + "x" + size + "x" + size}, {"cache", "cold"}};
    const RowSpec gpu = gemm_rows("cuda", options).front();
    EXPECT_GE(gpu.number.at("rotated_bytes"), wanted) << size;
    const RowSpec host = gemm_rows("host", options).front();
    if (size != "512") {
      EXPECT_EQ(host.number.at("rotated_bytes"), 2 * host.number.at("bytes")) << size;
    }
  }
}

TEST(PlayBounds, ShortCollectivesOfAGpuAreInPassesOf64) {
  Request request{.mesh = {.dp = 2}, .options = {{"op", "all_reduce"}, {"sizes", "8B"}}};
  const auto calls = [&] {
    return collectives::cases_of(request, collectives::setting_of(request)).front().calls;
  };
  EXPECT_EQ(calls(), 256);
  request.bounds = of("cuda");
  EXPECT_EQ(calls(), 64);
}

}  // namespace
}  // namespace isoscale::workloads
