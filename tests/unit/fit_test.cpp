// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/api/fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "plan_samples.hpp"

namespace isoscale::workloads {
namespace {

using testing::ElementsAre;

/// Every mesh of `ranks` ranks on some of the axes, as a user names it.
std::vector<mesh::Request> meshes_of(int ranks, mesh::AxisSet axes) {
  std::vector<std::pair<mesh::Request, int>> found{{{}, ranks}};  // and the ranks left
  for (const mesh::Axis axis : mesh::all_axes) {
    if (!axes.contains(axis)) continue;
    std::vector<std::pair<mesh::Request, int>> longer;
    for (const auto& [begun, left] : found) {
      for (int extent = 1; extent <= left; ++extent) {
        if (left % extent != 0) continue;
        mesh::Request request = begun;
        if (extent > 1) request[axis] = extent;
        longer.emplace_back(request, left / extent);
      }
    }
    found = std::move(longer);
  }
  std::vector<mesh::Request> meshes{{}};
  for (const auto& [request, left] : found) {
    if (left == 1) meshes.push_back(request);
  }
  return meshes;
}

bool knows(const Workload& workload, std::string_view key) {
  return std::ranges::find(workload.options, key, &OptionSpec::key) != workload.options.end();
}

struct Tally {
  int accepted = 0, numbers = 0, meshes = 0;
};

/// Empty when the call is accepted, else its refusal.
std::string refusal(const Workload& workload, const Request& base, const mesh::Request& mesh,
                    int ranks) {
  try {
    const Request request = fit(workload, base, mesh, ranks, Scaling::strong);
    return request.mesh.size() == ranks ? "" : "another number of ranks";
  } catch (const base::UsageError& error) {
    return error.what();
  }
}

/// One call: if it is refused, the same call must accept what the refusal suggests.
void try_fit(const Workload& workload, const Request& base, const mesh::Request& mesh, int ranks,
             Tally& tally) {
  try {
    static_cast<void>(fit(workload, base, mesh, ranks, Scaling::strong));
    ++tally.accepted;
  } catch (const NumberError& error) {
    ++tally.numbers;
    EXPECT_FALSE(error.suggested().empty()) << workload.name << ": " << error.what();
    for (const long long number : error.suggested()) {
      Request other = base;
      other.options[error.key()] = std::to_string(number);
      EXPECT_EQ(refusal(workload, other, mesh, ranks), "") << workload.name << ": " << error.what();
    }
  } catch (const mesh::MeshError& error) {
    ++tally.meshes;
    if (!error.nearest()) return;
    const mesh::Request nearest = mesh::parse_request(mesh::to_text(*error.nearest()));
    EXPECT_EQ(refusal(workload, base, nearest, ranks), "") << workload.name << ": " << error.what();
  } catch (const base::UsageError&) {
    return;  // of another option, which suggests nothing
  }
}

TEST(Fit, AcceptsEveryBatchAndMeshThatItSuggests) {
  for (const Workload& workload : registry()) {
    Tally tally;
    const int most_batch = knows(workload, "batch") && !workload.is_bench() ? 64 : 0;
    const int most_microbatch = knows(workload, "microbatch") ? 8 : 0;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::vector<mesh::Request> meshes = meshes_of(ranks, workload.axes);
      for (const int extent : {2, 3, 4, 7}) {
        for (const mesh::Axis axis : mesh::all_axes) {
          if (workload.axes.contains(axis)) meshes.push_back({{axis, extent}});
        }
      }
      for (const mesh::Request& mesh : meshes) {
        for (int batch = most_batch > 0 ? 1 : 0; batch <= most_batch; ++batch) {
          for (int microbatch = 0; microbatch <= most_microbatch; ++microbatch) {
            Request base = samples::planned_request();
            base.options.clear();
            if (batch > 0) base.options["batch"] = std::to_string(batch);
            if (microbatch > 0) base.options["microbatch"] = std::to_string(microbatch);
            try_fit(workload, base, mesh, ranks, tally);
          }
        }
      }
    }
    EXPECT_GT(tally.accepted, 0) << workload.name;
    EXPECT_GT(tally.meshes, 0) << workload.name;
    if (most_batch > 0 && workload.axes.contains(mesh::Axis::dp)) {
      EXPECT_GT(tally.numbers, 0) << workload.name;
    }
  }
}

/// The numbers that the refusal of a call suggests.
std::vector<long long> numbers_for(const Options& options, int ranks) {
  Request base = samples::planned_request();
  base.options = options;
  try {
    static_cast<void>(fit(find_workload("dp"), base, {}, ranks, Scaling::strong));
  } catch (const NumberError& error) {
    return error.suggested();
  }
  return {};
}

TEST(Fit, LooksAtReplicasAndMicrobatchesTogether) {
  EXPECT_THAT(numbers_for({}, 3), ElementsAre(60, 72));
  EXPECT_THAT(numbers_for({{"batch", "64"}}, 3), ElementsAre(60, 72));
  EXPECT_THAT(numbers_for({{"batch", "1"}}, 2), ElementsAre(2));
  EXPECT_THAT(numbers_for({{"microbatch", "4"}, {"microbatches", "16"}}, 3), ElementsAre(15, 18));
}

TEST(Fit, NamesHybridWhereAWorkloadHasNoMeshOfItsOwn) {
  Request base = samples::planned_request();
  base.model.heads = base.model.kv_heads = 15;
  const std::string text = refusal(find_workload("tp"), base, {}, 2);
  EXPECT_THAT(text, testing::HasSubstr("--workload hybrid --mesh dp=2"));
  EXPECT_EQ(refusal(find_workload("hybrid"), base, {{mesh::Axis::dp, 2}}, 2), "");
}

TEST(Fit, RefusesACapacityOfNothing) {
  Request base = samples::planned_request();
  base.options["capacity"] = "0";
  EXPECT_THAT(refusal(find_workload("ep"), base, {}, 2), testing::HasSubstr("capacity='0'"));
  base.options["capacity"] = "none";
  EXPECT_EQ(refusal(find_workload("ep"), base, {}, 2), "");
}

}  // namespace
}  // namespace isoscale::workloads
