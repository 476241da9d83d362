// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "mesh/mesh.hpp"

/// From what a user asked for to a mesh that fits both the ranks and the model, or a refusal.
namespace isoscale::mesh {
/// The axes a user named, "dp=2,tp=2"; an axis that is not named is absent.
using Request = std::map<Axis, int>;

/// "dp=2,tp=2": parse_request() gives it back.
[[nodiscard]] std::string to_text(const Request& request);
/// Throws base::UsageError for an unknown axis, a repeated one, or a number below 1.
[[nodiscard]] Request parse_request(std::string_view text);

/// The extent of `axis` must divide `number` ("heads", 12): a limit that a model sets.
struct Constraint {
  Axis axis;
  int number;
  std::string what;
};

/// A mesh that cannot be, and the nearest that can, if there is one.
class MeshError : public base::UsageError {
 public:
  /// `advice` is what to do about `why`.
  MeshError(const std::string& why, const std::string& advice, const std::optional<Shape>& nearest)
      : base::UsageError(why + "; " + advice), why_(why), nearest_(nearest) {}
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const std::optional<Shape>& nearest() const { return nearest_; }

 private:
  std::string why_;
  std::optional<Shape> nearest_;
};

/// A mesh as --mesh takes it: "dp=2,tp=2", and "dp=1" of one rank.
[[nodiscard]] std::string to_text(const Shape& shape);

/// Meshes that are allowed beside what limits say.
struct Allowed {
  AxisSet axes = every_axis;                    ///< the others stay 1
  std::function<bool(const Shape&)> accepts{};  ///< of a mesh that is suggested; null: any
};

/// Completes the request on `ranks` ranks: an unnamed dp absorbs what is left, other unnamed axes
/// are 1. Throws MeshError when the product is not `ranks`, an axis is not allowed or an extent
/// does not divide what it must; the message names the numbers and the nearest mesh that works
/// (fewest axes changed, then smallest total change in log2 of the extents).
[[nodiscard]] Shape resolve(const Request& request, int ranks, std::span<const Constraint> limits,
                            const Allowed& allowed = {});

/// The first limit that `shape` breaks, as a sentence; nullopt when it keeps them all.
[[nodiscard]] std::optional<std::string> violation(const Shape& shape,
                                                   std::span<const Constraint> limits);

}  // namespace isoscale::mesh
