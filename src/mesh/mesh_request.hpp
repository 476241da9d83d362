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

/// Turns a user's request into a mesh that fits both the ranks and the model, or refuses it.
namespace isoscale::mesh {
/// The axes that a user named, with their extents: "dp=2,tp=2". An axis that is not named is
/// absent.
using Request = std::map<Axis, int>;

/// Returns "dp=2,tp=2", which parse_request() reads back.
[[nodiscard]] std::string to_text(const Request& request);
/// Reads "dp=2,tp=2". Throws base::UsageError for an unknown axis, a repeated one, or a number
/// below 1.
[[nodiscard]] Request parse_request(std::string_view text);

/// A limit that a model sets: the extent of `axis` must divide `number`, the model's count of
/// `what`, for example its 12 "heads". `unless` is a setting that lifts the limit; "" if there is
/// none.
struct Constraint {
  Axis axis;
  int number;
  std::string what;
  std::string unless{};
};

/// The error for a requested mesh that does not fit the ranks or the model. It holds the nearest
/// mesh that works, if there is one.
class MeshError : public base::UsageError {
 public:
  /// `why` is the reason; `advice` tells the user what to do.
  MeshError(const std::string& why, const std::string& advice, const std::optional<Shape>& nearest)
      : base::UsageError(why + "; " + advice), why_(why), nearest_(nearest) {}
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const std::optional<Shape>& nearest() const { return nearest_; }

 private:
  std::string why_;
  std::optional<Shape> nearest_;
};

/// Returns a mesh in the form that --mesh takes: "dp=2,tp=2", or "dp=1" for one rank.
[[nodiscard]] std::string to_text(const Shape& shape);

/// Restrictions on a mesh beyond the limits of the model.
struct Allowed {
  AxisSet axes = every_axis;                    ///< the axes that may have more than one rank
  std::function<bool(const Shape&)> accepts{};  ///< tests a suggested mesh; null: any is accepted
};

/// Completes the request for `ranks` ranks: if dp is not named, it gets `ranks` divided by the
/// product of the named extents; other unnamed axes get extent 1. Throws MeshError if the product
/// of the extents is not `ranks`, if an axis is not allowed, or if an extent breaks one of
/// `limits`. The message gives the numbers and, if there is one, the nearest mesh that works
/// (fewest axes changed, then smallest total change in log2 of the extents). Throws
/// base::UsageError if `ranks` is below 1.
[[nodiscard]] Shape resolve(const Request& request, int ranks, std::span<const Constraint> limits,
                            const Allowed& allowed = {});

/// Returns the first limit that `shape` breaks, as a sentence; nullopt if it keeps them all.
[[nodiscard]] std::optional<std::string> violation(const Shape& shape,
                                                   std::span<const Constraint> limits);

}  // namespace isoscale::mesh
