// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/gpu_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_support.hpp"

namespace isoscale::machine {
namespace {

using settings::ShareGpu;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing_support::usage_error;

/// GPUs "GPU-a0", "GPU-a1", ... at buses 10, 11, ...
VisibleGpu gpu(int index, int which) {
  return {.index = index,
          .uuid = "GPU-a" + std::to_string(which),
          .pci_bus_id = "0000:1" + std::to_string(which) + ":00.0",
          .name = "made-up",
          .major = 9,
          .minor = 0,
          .memory = units::Bytes{1}};
}

using Seen = std::vector<std::vector<int>>;  ///< which GPUs each local rank sees

GpuView view(int local_rank, const Seen& seen) {
  GpuView result{.visible = {},
                 .local_rank = local_rank,
                 .seen_by = {},
                 .host = "node7",
                 .visible_devices = {}};
  for (const auto& gpus : seen) {
    result.seen_by.emplace_back();
    for (const int which : gpus) result.seen_by.back().push_back("GPU-a" + std::to_string(which));
  }
  int index = 0;
  for (const int which : seen[static_cast<std::size_t>(local_rank)]) {
    result.visible.push_back(gpu(index++, which));
  }
  return result;
}

/// The choices of all ranks of a node.
std::vector<int> choices(const Seen& seen, const std::string& bind = "auto",
                         ShareGpu share = ShareGpu::no) {
  std::vector<int> result;
  for (int rank = 0; rank < static_cast<int>(seen.size()); ++rank) {
    result.push_back(choose_gpu(view(rank, seen), bind, share));
  }
  return result;
}

TEST(ChooseGpu, CountsByLocalRankWhereAllSeeTheSame) {
  EXPECT_THAT(choices({{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(choices({{3, 1, 2}, {3, 1, 2}}), ElementsAre(0, 1));
  EXPECT_THAT(choices({{5}}), ElementsAre(0));
}

TEST(ChooseGpu, TakesTheOneThatTheSchedulerShows) {
  EXPECT_THAT(choices({{2}, {0}, {1}}), ElementsAre(0, 0, 0));
  // Two ranks that were given the same one are found when their choices are compared.
  EXPECT_THAT(choices({{2}, {2}, {1}}), ElementsAre(0, 0, 0));
}

TEST(ChooseGpu, RefusesFewerGpusThanRanks) {
  const Seen three_on_two{{0, 1}, {0, 1}, {0, 1}};
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(
        usage_error([&] { (void)choose_gpu(view(rank, three_on_two), "auto", ShareGpu::no); }),
        AllOf(HasSubstr("node7"), HasSubstr("3 ranks"), HasSubstr("2 GPUs"),
              HasSubstr("--share-gpu")));
  }
  EXPECT_THAT(choices(three_on_two, "auto", ShareGpu::yes), ElementsAre(0, 1, 0));
  EXPECT_THAT(usage_error([] {
                (void)choices({{0}, {0}});
              }),
              AllOf(HasSubstr("node7"), HasSubstr("2 ranks"), HasSubstr("1 GPU:")));
  EXPECT_THAT(choices({{0}, {0}, {0}}, "auto", ShareGpu::yes), ElementsAre(0, 0, 0));
}

TEST(ChooseGpu, RefusesNeighboursThatSeeOthers) {
  EXPECT_THAT(
      usage_error([] {
        (void)choose_gpu(view(1, {{0, 1}, {0}}), "auto", ShareGpu::no);
      }),
      AllOf(HasSubstr("rank 1 sees 1"), HasSubstr("rank 0 sees 2"), HasSubstr("--gpu-bind")));
  EXPECT_THAT(usage_error([] {
                (void)choices({{0, 1}, {2, 3}});
              }),
              AllOf(HasSubstr("rank 0 sees 2"), HasSubstr("rank 1 sees 2")));
  EXPECT_THAT(usage_error([] { (void)choices({{0, 1}, {1, 0}}); }), HasSubstr("different GPUs"));
  EXPECT_THAT(usage_error([] { (void)choices({{0}, {}}); }), HasSubstr("rank 1 sees 0"));
  EXPECT_THAT(choices({{0, 1}, {2, 3}}, "auto", ShareGpu::yes), ElementsAre(0, 1));
}

TEST(ChooseGpu, SaysWhatHidesAllGpus) {
  GpuView nothing = view(0, {{}});
  for (const ShareGpu share : {ShareGpu::no, ShareGpu::yes}) {
    EXPECT_THAT(usage_error([&] { (void)choose_gpu(nothing, "auto", share); }),
                AllOf(HasSubstr("local rank 0 on node7"), HasSubstr("--device host")));
  }
  nothing.visible_devices = "";
  EXPECT_THAT(usage_error([&] { (void)choose_gpu(nothing, "0", ShareGpu::no); }),
              AllOf(HasSubstr("CUDA_VISIBLE_DEVICES is ''"), HasSubstr("unset it")));
  nothing.visible_devices = "9\x1b[31m";
  EXPECT_THAT(usage_error([&] { (void)choose_gpu(nothing, "auto", ShareGpu::no); }),
              HasSubstr("CUDA_VISIBLE_DEVICES is '9\\x1b[31m'"));
}

TEST(ChooseGpu, FollowsABinding) {
  const Seen seen{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
  EXPECT_THAT(choices(seen, "2,0,1"), ElementsAre(2, 0, 1));
  EXPECT_THAT(choices(seen, "GPU-A1,0,GPU-a2"), ElementsAre(1, 0, 2));
  EXPECT_THAT(choices(seen, "00000000:12:00.0,0000:10:00.0,11:00.0"), ElementsAre(2, 0, 1));
  EXPECT_THAT(choices({{4, 2}, {2, 4}}, "GPU-a2,GPU-a4"), ElementsAre(1, 1));
}

TEST(ChooseGpu, RefusesABindingThatDoesNotFit) {
  const Seen seen{{0, 1}, {0, 1}};
  EXPECT_THAT(
      usage_error([&] { (void)choices(seen, "0"); }),
      AllOf(HasSubstr("--gpu-bind '0'"), HasSubstr("1 GPU,"), HasSubstr("2 ranks on node7")));
  EXPECT_THAT(usage_error([&] { (void)choices(seen, "0,1,0"); }), HasSubstr("names 3 GPUs"));
  EXPECT_THAT(usage_error([] { (void)choices({{0}}, "0,0"); }), HasSubstr("1 rank on"));
  EXPECT_THAT(usage_error([&] { (void)choices(seen, "0,2"); }),
              AllOf(HasSubstr("GPU '2'"), HasSubstr("local rank 1 on node7"),
                    HasSubstr("0 (GPU-a0, 0000:10:00.0); 1 (GPU-a1, 0000:11:00.0)")));
  EXPECT_THAT(usage_error([&] { (void)choices(seen, "0001:10:00.0,1"); }),
              AllOf(HasSubstr("GPU '0001:10:00.0'"), HasSubstr("local rank 0")));
}

TEST(SharedGpus, AreRefusedUnlessAskedFor) {
  const std::vector<GpuUse> apart{{.rank = 4, .uuid = "GPU-a"}, {.rank = 5, .uuid = "GPU-b"}};
  EXPECT_FALSE(share_a_gpu(apart));
  EXPECT_NO_THROW(refuse_shared_gpus(apart, "node7", ShareGpu::no));
  std::vector<GpuUse> together = apart;
  together.push_back({.rank = 6, .uuid = "GPU-a"});
  EXPECT_TRUE(share_a_gpu(together));
  EXPECT_THAT(
      usage_error([&] { refuse_shared_gpus(together, "node7", ShareGpu::no); }),
      AllOf(HasSubstr("ranks 4 and 6 on node7"), HasSubstr("GPU-a"), HasSubstr("--share-gpu")));
  EXPECT_NO_THROW(refuse_shared_gpus(together, "node7", ShareGpu::yes));
  EXPECT_FALSE(share_a_gpu({}));
}

TEST(Precisions, AreThoseOfTheChip) {
  using enum program::Precision;
  EXPECT_THAT(precisions_of(5, 2), ElementsAre(f64, f32));
  EXPECT_THAT(precisions_of(5, 3), ElementsAre(f64, f32, f16));
  EXPECT_THAT(precisions_of(7, 5), ElementsAre(f64, f32, f16));
  EXPECT_THAT(precisions_of(8, 0), ElementsAre(f64, f32, tf32, f16, bf16));
  EXPECT_THAT(precisions_of(8, 6), ElementsAre(f64, f32, tf32, f16, bf16));
  for (const auto& [major, minor] : {std::pair{8, 9}, {9, 0}, {10, 0}, {12, 1}}) {
    EXPECT_THAT(precisions_of(major, minor), ElementsAre(f64, f32, tf32, f16, bf16, fp8));
  }
}

TEST(DriverProblem, IsADriverThatIsMissingOrOfAnOlderMajor) {
  EXPECT_THAT(driver_problem(0, 13000),
              Optional(AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("--device host"))));
  EXPECT_THAT(driver_problem(12080, 13010),
              Optional(AllOf(HasSubstr("to 12.8"), HasSubstr("with CUDA 13.1"),
                             HasSubstr("branch 580"), HasSubstr("toolkit of CUDA 12"))));
  EXPECT_THAT(driver_problem(11080, 12000), Optional(HasSubstr("branch 525")));
  EXPECT_EQ(driver_problem(13000, 13000), std::nullopt);
  EXPECT_EQ(driver_problem(13000, 13020), std::nullopt);
  EXPECT_EQ(driver_problem(14000, 13020), std::nullopt);
}

TEST(NcclProblem, IsALibraryWithoutSplit) {
  EXPECT_EQ(nccl_problem(21800), std::nullopt);
  EXPECT_EQ(nccl_problem(22809), std::nullopt);
  EXPECT_THAT(nccl_problem(21705),
              Optional(AllOf(HasSubstr("NCCL 2.17.5"), HasSubstr("2.18 or newer"))));
  EXPECT_THAT(nccl_problem(2708), Optional(HasSubstr("NCCL 2.7.8")));
}

}  // namespace
}  // namespace isoscale::machine
