// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace isoscale::workloads {
namespace {

constexpr std::string_view any_mesh = "hybrid";  // the workload that has every axis

std::string advice(std::string_view key, const std::vector<long long>& suggested) {
  if (suggested.empty()) return "";
  if (suggested.size() == 1)
    return fmt::format("; the nearest {} that works is {}", key, suggested[0]);
  return fmt::format("; the nearest that work are {}={} and {}", key, suggested[0], suggested[1]);
}

/// True if the workload takes the mesh with these options.
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

/// " or use --workload hybrid --mesh dp=2", where that would do; else "".
std::string other_workload(const Workload& workload, const Request& base,
                           const mesh::Request& wanted, int ranks, Scaling scaling) {
  const Workload& other = find_workload(any_mesh);
  if (workload.build != other.build || workload.name == other.name) return "";
  try {
    const mesh::Shape shape = resolved(other, base, wanted, ranks, scaling);
    if (!takes(other, base, shape, scaling)) return "";
    return fmt::format("; or use --workload {} --mesh {}", any_mesh, mesh::to_text(shape));
  } catch (const mesh::MeshError& error) {
    if (!error.nearest()) return "";
    return fmt::format("; or use --workload {} --mesh {}", any_mesh,
                       mesh::to_text(*error.nearest()));
  } catch (const base::UsageError&) {
    return "";
  }
}

}  // namespace

NumberError::NumberError(const std::string& why, std::string key, std::vector<long long> suggested)
    : base::UsageError(why + advice(key, suggested)),
      key_(std::move(key)),
      suggested_(std::move(suggested)) {}

std::vector<long long> nearest_accepted(long long number,
                                        const std::function<bool(long long)>& accepts) {
  constexpr long long most_looked_at = 100'000;
  std::vector<long long> found;
  for (long long below = number - 1; below >= 1 && below >= number - most_looked_at; --below) {
    if (!accepts(below)) continue;
    found.push_back(below);
    break;
  }
  for (long long above = number + 1; above <= number + most_looked_at; ++above) {
    if (!accepts(above)) continue;
    found.push_back(above);
    break;
  }
  return found;
}

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

Request fit(const Workload& workload, const Request& base, const mesh::Request& wanted, int ranks,
            Scaling scaling) {
  const mesh::Request asked = wanted.empty() ? workload.natural_mesh(ranks) : wanted;
  std::optional<mesh::Shape> shape;
  try {
    shape = resolved(workload, base, asked, ranks, scaling);
  } catch (const mesh::MeshError& error) {
    const std::string other = other_workload(workload, base, asked, ranks, scaling);
    if (other.empty()) throw;
    throw mesh::MeshError(error.what() + other, error.nearest());
  }
  return workload.scale(base, *shape, scaling);
}

}  // namespace isoscale::workloads
