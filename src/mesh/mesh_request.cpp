// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "mesh/mesh_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace isoscale::mesh {
namespace {

using base::trimmed;

std::pair<Axis, int> parse_item(std::string_view item, std::string_view text) {
  const auto equals = item.find('=');
  if (equals == std::string_view::npos) {
    throw base::usage_error("mesh '{}': '{}' is not AXIS=NUMBER; write for example dp=2,tp=2", text,
                            item);
  }
  const std::string_view key = trimmed(item.substr(0, equals));
  const std::string_view number = trimmed(item.substr(equals + 1));
  const auto* const axis =
      std::ranges::find_if(all_axes, [&](Axis candidate) { return name(candidate) == key; });
  if (axis == all_axes.end()) {
    throw base::usage_error("mesh '{}': unknown axis '{}'; the axes are tp, cp, ep, dp, pp", text,
                            key);
  }
  if (const auto value = base::number_in<int>(number); value && *value >= 1) return {*axis, *value};
  throw base::usage_error("mesh '{}': {} is '{}'; give a whole number of at least 1", text, key,
                          number);
}

/// Returns the distance of a mesh from the request: the number of axes whose extents differ, and
/// the sum of these differences in log2. A dp that the request does not name is ignored.
std::pair<int, double> distance(const Shape& shape, const Request& request) {
  int changed = 0;
  double change = 0;
  for (const Axis axis : all_axes) {
    const auto named = request.find(axis);
    if (named == request.end() && axis == Axis::dp) continue;
    const int wished = named == request.end() ? 1 : named->second;
    if (shape[axis] == wished) continue;
    ++changed;
    change += std::abs(std::log2(static_cast<double>(shape[axis]) / wished));
  }
  return {changed, change};
}

/// Returns the mesh of `ranks` ranks that is nearest to a request (see distance()), among those
/// that satisfy the model's `limits` and `allowed`; nullopt if there is none.
std::optional<Shape> nearest_mesh(const Request& request, int ranks,
                                  std::span<const Constraint> limits, const Allowed& allowed) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= ranks / divisor; ++divisor) {
    if (ranks % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor != ranks / divisor) divisors.push_back(ranks / divisor);
  }
  std::ranges::sort(divisors);
  std::vector<Shape> meshes{{.dp = ranks}};
  // dp takes the ranks that the other axes leave. cp and ep change only if the request names them.
  for (const Axis axis : {Axis::tp, Axis::pp, Axis::cp, Axis::ep}) {
    const bool optional = axis == Axis::cp || axis == Axis::ep;
    if (!allowed.axes.contains(axis) || (optional && !request.contains(axis))) continue;
    std::vector<Shape> split;
    for (const Shape& mesh : meshes) {
      for (const int divisor : divisors) {
        if (mesh.dp % divisor != 0) continue;
        Shape& part = split.emplace_back(mesh);
        part[axis] = divisor;
        part.dp /= divisor;
      }
    }
    meshes = std::move(split);
  }
  std::optional<Shape> best;
  std::pair<int, double> least{};
  for (const Shape& mesh : meshes) {
    if (mesh.dp > 1 && !allowed.axes.contains(Axis::dp)) continue;
    if (violation(mesh, limits)) continue;
    const auto [changed, change] = distance(mesh, request);
    constexpr double tie = 1e-9;  // two sums of the same logarithms may differ in the last bit
    const bool better =
        !best || changed < least.first || (changed == least.first && change < least.second - tie);
    if (!better || (allowed.accepts && !allowed.accepts(mesh))) continue;
    best = mesh;
    least = {changed, change};
  }
  return best;
}

}  // namespace

Request parse_request(std::string_view text) {
  Request request;
  for (const std::string_view item : base::split(text, ',')) {
    const auto [axis, value] = parse_item(trimmed(item), text);
    if (request.emplace(axis, value).second) continue;
    throw base::usage_error("mesh '{}': {} is given twice; give each axis once", text, name(axis));
  }
  return request;
}

std::string to_text(const Request& request) {
  std::string text;
  for (const auto& [axis, value] : request) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name(axis), value);
  }
  return text;
}

std::string to_text(const Shape& shape) { return shape.size() == 1 ? "dp=1" : to_string(shape); }

Shape resolve(const Request& request, int ranks, std::span<const Constraint> limits,
              const Allowed& allowed) {
  if (ranks < 1) {
    throw base::usage_error("a mesh of {} ranks: give at least 1 rank", ranks);
  }
  const auto all = [ranks] { return base::counted(ranks, "rank"); };
  const auto refuse = [&](const std::string& why) {
    const std::optional<Shape> nearest = nearest_mesh(request, ranks, limits, allowed);
    const std::string advice =
        nearest ? fmt::format("the nearest mesh that works on {} is {}", all(), to_text(*nearest))
                : fmt::format("no mesh of {} works here: use another number of ranks", all());
    throw MeshError(why, advice, nearest);
  };
  // A double cannot overflow here, and it is exact for every product that fits into an int.
  double named = 1;
  for (const auto& [axis, value] : request) named *= value;
  const bool dp_is_free = !request.contains(Axis::dp);
  if (dp_is_free ? std::fmod(ranks, named) != 0 : named != ranks) {
    refuse(dp_is_free ? fmt::format("mesh {}: {} cannot be divided by {:.0f}", to_text(request),
                                    all(), named)
                      : fmt::format("mesh {}: the axes multiply to {:.0f}, but the launch has {}",
                                    to_text(request), named, all()));
  }
  Shape shape;
  for (const auto& [axis, value] : request) shape[axis] = value;
  if (dp_is_free) shape.dp = ranks / static_cast<int>(named);
  for (const Axis axis : all_axes) {
    if (shape[axis] == 1 || allowed.axes.contains(axis)) continue;
    refuse(fmt::format("mesh {}: there is no axis {} here to put {} on", to_string(shape),
                       name(axis), all()));
  }
  if (const auto broken = violation(shape, limits)) {
    refuse(fmt::format("mesh {}: {}", to_string(shape), *broken));
  }
  return shape;
}

std::optional<std::string> violation(const Shape& shape, std::span<const Constraint> limits) {
  for (const Constraint& limit : limits) {
    if (limit.number % shape[limit.axis] == 0) continue;
    return fmt::format("{}={} does not divide {} = {}{}{}", name(limit.axis), shape[limit.axis],
                       limit.what, limit.number, limit.unless.empty() ? "" : ", as it must unless ",
                       limit.unless);
  }
  return std::nullopt;
}

}  // namespace isoscale::mesh
