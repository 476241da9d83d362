// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// Feeds the reader with a point some of whose attributes and datasets are damaged. An input says
// which and how; an empty one damages none.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "results/records/point_fields.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/unit/results_samples.hpp"

namespace {

using isoscale::fuzz::must;
using nlohmann::json;
namespace results = isoscale::results;

/// Takes numbers and texts off an input; zeros at its end.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  [[nodiscard]] T number() {
    T value{};
    const std::size_t taken = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), taken);
    rest_.remove_prefix(taken);
    return value;
  }
  [[nodiscard]] std::size_t below(std::size_t end) { return number<std::uint16_t>() % end; }
  [[nodiscard]] std::string text() {
    std::string text{rest_.substr(0, below(32))};
    rest_.remove_prefix(std::min(text.size(), rest_.size()));
    return text;
  }

 private:
  std::string_view rest_;
};

/// A group in memory that has what records need of one of HDF5.
class Group : public results::JsonObject {
 public:
  explicit Group(json& object) : JsonObject(object), object_(object) {}

  [[nodiscard]] Group create_group(const std::string& name) const {
    return Group{object_[name] = json::object()};
  }
  [[nodiscard]] Group open_group(const std::string& name) const { return Group{object_.at(name)}; }
  [[nodiscard]] bool has(const std::string& name) const { return object_.contains(name); }

  template <class Value>
  void write(const std::string& name, results::Dimensions dimensions, std::span<const Value> values,
             const results::About& about, std::span<const std::string> names = {}) const {
    JsonObject::write(name, dimensions, values, about);
    if (!names.empty()) JsonObject::write(name + ".names", {names.size()}, names, about);
    if (dimensions.size() == 2) {
      set(name + ".columns", std::max<std::int64_t>(1, static_cast<int>(dimensions.begin()[1])));
    }
  }
  [[nodiscard]] std::vector<std::string> names_of_codes(const std::string& name) const {
    return read<std::string>(name + ".names");
  }
  [[nodiscard]] std::string read_text(const std::string& name) const {
    const auto texts = read<std::string>(name);
    results::require(texts.size() == 1, "a text is missing");
    return texts.front();
  }
  [[nodiscard]] std::vector<std::vector<double>> read_rows(const std::string& name) const {
    const auto values = read<double>(name);
    const auto columns = get<std::int64_t>(name + ".columns");
    const auto size = static_cast<std::int64_t>(values.size());
    results::require(columns > 0 && size % columns == 0, "a table ends within a row");
    std::vector<std::vector<double>> rows;
    for (auto at = values.begin(); at != values.end(); at += columns) {
      rows.emplace_back(at, at + columns);
    }
    return rows;
  }

 private:
  json& object_;  ///< not owned
};

/// Appends the attributes and datasets of a group and of the groups in it.
void list(json& group, std::vector<json*>& into) {
  for (json& value : group) {
    if (value.is_object()) {
      list(value, into);
    } else {
      into.push_back(&value);
    }
  }
}

void damage(std::vector<std::uint8_t>& bytes, Input& input) {
  const std::size_t at = input.below(bytes.size() + 1), begin = at - at % sizeof(std::int64_t);
  const std::size_t how = input.below(4);
  if (how == 0 && at < bytes.size()) {
    bytes[at] = input.number<std::uint8_t>();
  } else if (how == 1 && begin < bytes.size()) {
    const auto number = input.number<std::int64_t>();
    std::memcpy(bytes.data() + begin, &number, std::min(sizeof number, bytes.size() - begin));
  } else if (how == 2) {
    bytes.resize(begin);
  } else {
    const std::vector<std::uint8_t> copy(bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    bytes.insert(bytes.end(), copy.begin(), copy.end());
  }
}

void damage(json& value, Input& input) {
  if (value.is_binary()) {
    damage(value.get_binary(), input);
  } else if (value.is_string()) {
    value = input.text();
  } else if (!value.is_array()) {
    value = input.number<std::int64_t>();
  } else if (value.empty() || input.below(2) == 0) {
    value.push_back(input.text());
  } else {
    value.erase(input.below(value.size()));
  }
}

json stored(const results::PointData& point) {
  json object = json::object();
  Group group{object};
  results::put_record(group, point, static_cast<std::size_t>(point.ranks));
  return object;
}

/// `minor` is the schema version that the file is said to have.
results::PointData restored(json& object, int minor) {
  results::PointData point;
  results::get_record(Group{object}, point, minor);
  validate(point);
  return point;
}

void try_point(std::string_view bytes) {
  static const json whole = stored(results::samples::point(0));
  json object = whole;
  Input input{bytes};
  std::vector<json*> values;
  list(object, values);
  for (std::size_t left = bytes.empty() ? 0 : 1 + input.below(3); left > 0; --left) {
    damage(*values[input.below(values.size())], input);
  }
  const auto minor =
      results::schema_minor - static_cast<int>(input.below(std::size_t{results::schema_minor} + 1));
  try {
    json once = stored(restored(object, minor));
    must(stored(restored(once, results::schema_minor)) == once, "a point stays what it is");
  } catch (const isoscale::base::Error&) {
    must(!bytes.empty(), "a point that is not damaged can be read");
  } catch (const json::exception&) {  // as an HDF5 error of a dataset of another type
    must(!bytes.empty(), "a point that is not damaged can be read");
  }
}

void try_text(std::string_view bytes) {
  const std::string once = results::valid_utf8(bytes);
  must(results::valid_utf8(once) == once, "what is UTF-8 stays as it is");
  must(once.size() <= 3 * bytes.size(), "U+FFFD stands for a byte or more");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};           // NOLINT
  try_text(bytes);
  try_point(bytes);
  return 0;
}
