// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/gpu_choice.hpp"

#include "words.hpp"

namespace isoscale::machine {
namespace {

using settings::ShareGpu;
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
  GpuView result;
  result.local_rank = local_rank;
  result.host = "node7";
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

/// Why all ranks of a node together, or one of them alone, are given no GPU.
std::string refused(const Seen& seen, const std::string& bind) {
  return usage_error([&] { return choices(seen, bind); });
}
std::string refused_alone(const GpuView& rank, const char* bind = "auto",
                          ShareGpu share = ShareGpu::no) {
  return usage_error(choose_gpu, rank, bind, share);
}

TEST(ChooseGpu, CountsByLocalRankOrTakesWhatTheSchedulerShowsOrFollowsABinding) {
  const Seen three(3, {0, 1, 2});
  for (const auto& [seen, bind, expected] :
       {std::tuple{Seen(4, {0, 1, 2, 3}), "auto", std::vector{0, 1, 2, 3}},
        {Seen(2, {3, 1, 2}), "auto", {0, 1}},
        {{{5}}, "auto", {0}},
        {{{2}, {0}, {1}}, "auto", {0, 0, 0}},
        // Two ranks that were given the same one are found when their choices are compared.
        {{{2}, {2}, {1}}, "auto", {0, 0, 0}},
        {three, "2,0,1", {2, 0, 1}},
        {three, "GPU-A1,0,GPU-a2", {1, 0, 2}},
        {three, "00000000:12:00.0,0000:10:00.0,11:00.0", {2, 0, 1}},
        {{{4, 2}, {2, 4}}, "GPU-a2,GPU-a4", {1, 1}}}) {
    EXPECT_EQ(choices(seen, bind), expected) << bind;
  }
}

TEST(ChooseGpu, SharesGpusWhereAskedTo) {
  for (const auto& [seen, expected] : {std::pair{Seen(3, {0, 1}), std::vector{0, 1, 0}},
                                       {{{0}, {0}, {0}}, {0, 0, 0}},
                                       {{{0, 1}, {2, 3}}, {0, 1}}}) {
    EXPECT_EQ(choices(seen, "auto", ShareGpu::yes), expected);
  }
}

TEST(ChooseGpu, RefusesFewerGpusThanRanksNeighboursThatSeeOthersAndBindingsThatDoNotFit) {
  const Seen two(2, {0, 1}), three(3, {0, 1});
  testing_support::expect_words_of<std::pair<Seen, std::string>>(
      {{{three, "auto"}, {"node7", "3 ranks", "2 GPUs", "--share-gpu"}},
       {{{{0}, {0}}, "auto"}, {"node7", "2 ranks", "1 GPU:"}},
       {{{{0, 1}, {0}}, "auto"}, {"rank 0 sees 2", "rank 1 sees 1", "--gpu-bind"}},
       {{{{0, 1}, {2, 3}}, "auto"}, {"rank 0 sees 2", "rank 1 sees 2"}},
       {{{{0, 1}, {1, 0}}, "auto"}, {"different GPUs"}},
       {{{{0}, {}}, "auto"}, {"rank 1 sees 0"}},
       {{two, "0"}, {"--gpu-bind '0'", "1 GPU,", "2 ranks on node7"}},
       {{two, "0,1,0"}, {"names 3 GPUs"}},
       {{{{0}}, "0,0"}, {"1 rank on"}},
       {{two, "0,2"}, {"GPU '2'", "rank 1 on node7", "0 (GPU-a0, 0000:10:00.0)", "1 (GPU-a1"}},
       {{two, "0001:10:00.0,1"}, {"GPU '0001:10:00.0'", "local rank 0"}}},
      [](const auto& asked) { return refused(asked.first, asked.second); });
  // Every rank finds what is wrong.
  for (const int rank : {0, 1, 2}) EXPECT_NE(refused_alone(view(rank, three)), "");
  EXPECT_THAT(refused_alone(view(1, {{0, 1}, {0}})), HasSubstr("rank 0 sees 2"));
}

TEST(ChooseGpu, SaysWhatHidesAllGpus) {
  GpuView nothing = view(0, {{}});
  for (const ShareGpu share : {ShareGpu::no, ShareGpu::yes}) {
    EXPECT_THAT(refused_alone(nothing, "auto", share),
                AllOf(HasSubstr("local rank 0 on node7"), HasSubstr("--device host")));
  }
  nothing.visible_devices = "";
  EXPECT_THAT(refused_alone(nothing, "0"), HasSubstr("CUDA_VISIBLE_DEVICES is ''"));
  nothing.visible_devices = "9\x1b[31m";
  EXPECT_THAT(refused_alone(nothing), HasSubstr("'9\\x1b[31m'"));
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
  const std::vector old{f64, f32}, half{f64, f32, f16}, ampere{f64, f32, tf32, f16, bf16},
      newer{f64, f32, tf32, f16, bf16, fp8};
  for (const auto& [major, minor, expected] : {std::tuple{5, 2, old},
                                               {5, 3, half},
                                               {7, 5, half},
                                               {8, 0, ampere},
                                               {8, 6, ampere},
                                               {8, 9, newer},
                                               {9, 0, newer},
                                               {10, 0, newer},
                                               {12, 1, newer}}) {
    EXPECT_EQ(precisions_of(major, minor), expected) << major << "." << minor;
  }
}

TEST(LibraryProblem, IsADriverThatIsMissingOrOlderAndNcclWithoutSplit) {
  EXPECT_THAT(driver_problem(0, 13000),
              Optional(AllOf(HasSubstr("driver"), HasSubstr("--device host"))));
  EXPECT_THAT(driver_problem(12080, 13010),
              Optional(AllOf(HasSubstr("12.8"), HasSubstr("13.1"), HasSubstr("branch 580"))));
  EXPECT_THAT(driver_problem(11080, 12000), Optional(HasSubstr("branch 525")));
  EXPECT_EQ(driver_problem(13000, 13000), std::nullopt);
  EXPECT_EQ(driver_problem(13000, 13020), std::nullopt);
  EXPECT_EQ(driver_problem(14000, 13020), std::nullopt);
  EXPECT_EQ(nccl_problem(21800), std::nullopt);
  EXPECT_EQ(nccl_problem(22809), std::nullopt);
  EXPECT_THAT(nccl_problem(21705), Optional(AllOf(HasSubstr("2.17.5"), HasSubstr("2.18"))));
  EXPECT_THAT(nccl_problem(2708), Optional(HasSubstr("2.7.8")));
}

}  // namespace
}  // namespace isoscale::machine
