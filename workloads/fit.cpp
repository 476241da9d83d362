// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/text.hpp"
#include "workloads/registry.hpp"

namespace isoscale::workloads {
namespace {

constexpr std::string_view any_mesh = "hybrid";  // the workload that has every axis

/// True if the workload can be planned on this mesh with the options of `base`.
bool takes(const Workload& workload, const Request& base, const mesh::Shape& shape,
           Scaling scaling) {
  try {
    const Request request = workload.scale(base, shape, scaling);
    if (workload.is_bench()) static_cast<void>(workload.bench.batches(request));
    return true;
  } catch (const base::UsageError&) {
    return false;
  }
}

mesh::Shape resolved(const Workload& workload, const Request& base, const mesh::Request& wanted,
                     int ranks, Scaling scaling) {
  const auto limits = workload.limits(base, scaling);
  return mesh::resolve(wanted, ranks, limits,
                       {.axes = workload.axes, .accepts = [&](const mesh::Shape& shape) {
                          return takes(workload, base, shape, scaling);
                        }});
}

/// Returns the workload hybrid and a mesh with which it would work, as options ("--workload hybrid
/// --mesh dp=2"). Returns "" if there is no such mesh, if `workload` is hybrid itself, or if it is
/// no workload that trains a transformer.
std::string other_workload(const Workload& workload, const Request& base,
                           const mesh::Request& wanted, int ranks, Scaling scaling) {
  const Workload& other = find_workload(any_mesh);
  if (workload.build != other.build || workload.name == other.name) return "";
  std::optional<mesh::Shape> shape;
  try {
    shape = resolved(other, base, wanted, ranks, scaling);
  } catch (const mesh::MeshError& error) {
    shape = error.nearest();
  }
  if (!shape || !takes(other, base, *shape, scaling)) return "";
  return fmt::format("--workload {} --mesh {}", any_mesh, mesh::to_text(*shape));
}

mesh::Request asked(const Workload& workload, const mesh::Request& wanted, int ranks) {
  return wanted.empty() ? workload.natural_mesh(ranks) : wanted;
}

bool fits(const Workload& workload, const Request& base, const mesh::Request& wanted, int ranks,
          Scaling scaling) {
  try {
    const auto limits = workload.limits(base, scaling);
    const mesh::Shape shape =
        mesh::resolve(asked(workload, wanted, ranks), ranks, limits, {.axes = workload.axes});
    return takes(workload, base, shape, scaling);
  } catch (const base::UsageError&) {
    return false;
  }
}

/// Returns advice that names what would work, the nearest rank counts and the workload hybrid: "use
/// 1 or 3 ranks, or --workload hybrid --mesh dp=2". If neither is found to work, the advice is to
/// use another mesh, model or options.
std::string instead(const Workload& workload, const Request& base, const mesh::Request& wanted,
                    int ranks, Scaling scaling) {
  const std::vector<int> near = nearest_ranks(workload, base, wanted, ranks, scaling);
  const std::string other =
      other_workload(workload, base, asked(workload, wanted, ranks), ranks, scaling);
  if (near.empty() && other.empty()) return "use another mesh, model or options";
  const std::string counts = near.empty()
                                 ? ""
                                 : fmt::format("{} rank{}", fmt::join(near, " or "),
                                               near.size() == 1 && near.front() == 1 ? "" : "s");
  return fmt::format("use {}{}{}", counts, counts.empty() || other.empty() ? "" : ", or ", other);
}

}  // namespace

mesh::Request curve_mesh(const Workload& workload, std::span<const int> counts, int node_ranks) {
  mesh::Request result;
  std::ptrdiff_t most = -1;
  for (const int count : counts) {
    const mesh::Request mesh = workload.natural_mesh(count);
    if (!mesh.contains(mesh::Axis::dp) || !mesh.contains(mesh::Axis::pp)) return {};
    const auto at_work =
        std::ranges::count_if(mesh, [](const auto& axis) { return axis.second > 1; });
    if (at_work <= most) continue;
    result = mesh;
    most = at_work;
  }
  result.erase(mesh::Axis::dp);
  while (node_ranks > 0 && result[mesh::Axis::tp] > node_ranks) result[mesh::Axis::tp] /= 2;
  return result;
}

std::vector<int> nearest_ranks(const Workload& workload, const Request& base,
                               const mesh::Request& wanted, int ranks, Scaling scaling) {
  constexpr int most_tried = 4096;  // most counts tried on either side of `ranks`
  const auto accepts = [&](long long count) {
    return fits(workload, base, wanted, static_cast<int>(count), scaling);
  };
  std::vector<int> near;
  for (const long long count : nearest_accepted(ranks, accepts, std::min(ranks, most_tried))) {
    near.push_back(static_cast<int>(count));
  }
  return near;
}

Request fit(const Workload& workload, const Request& base, const mesh::Request& wanted, int ranks,
            Scaling scaling) {
  std::optional<mesh::Shape> shape;
  try {
    shape = resolved(workload, base, asked(workload, wanted, ranks), ranks, scaling);
  } catch (const mesh::MeshError& error) {
    if (error.nearest()) throw;
    throw mesh::MeshError(
        error.why(),
        fmt::format("{} has no mesh of {} with these numbers: {}", workload.name,
                    base::counted(ranks, "rank"), instead(workload, base, wanted, ranks, scaling)),
        std::nullopt);
  }
  return workload.scale(base, *shape, scaling);
}

}  // namespace isoscale::workloads
