// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <utility>

#include "results/hdf5.hpp"

namespace isoscale::results::hdf5 {
namespace {

/// Far over any text of ours; attributes are for short things.
constexpr std::size_t max_text = std::size_t{1} << 24;

TypeId any_text_type() {
  TypeId type{check(H5Tcopy(H5T_C_S1))};
  check(H5Tset_size(type.get(), H5T_VARIABLE));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

/// h5py's own form of a boolean: an enumeration that it reads as bool.
TypeId flag_type() {
  TypeId type{check(H5Tenum_create(H5T_STD_I8LE))};
  for (const auto& [label, value] :
       {std::pair<const char*, std::int8_t>{"FALSE", 0}, {"TRUE", 1}}) {
    check(H5Tenum_insert(type.get(), label, &value));
  }
  return type;
}

void write_scalar(hid_t owner, const std::string& name, hid_t file_type, hid_t memory_type,
                  const void* value) {
  if (check(H5Aexists(owner, name.c_str())) > 0) check(H5Adelete(owner, name.c_str()));
  const SpaceId space{check(H5Screate(H5S_SCALAR))};
  const AttributeId attribute{
      check(H5Acreate2(owner, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT))};
  check(H5Awrite(attribute.get(), memory_type, value));
}

struct OpenAttribute {
  AttributeId id;
  TypeId type;
};

/// Whether an attribute is one value. A number of one value takes exactly the room of its type;
/// a text of variable length is stored as length, address and index (16 bytes in our files), which
/// no two of them are. The shape itself is a copy that costs as much as the value.
bool is_scalar(const OpenAttribute& attribute) {
  constexpr hsize_t stored_text = 16;
  const hsize_t stored = H5Aget_storage_size(attribute.id.get());
  const bool is_variable = check(H5Tis_variable_str(attribute.type.get())) > 0;
  if (stored == (is_variable ? stored_text : H5Tget_size(attribute.type.get()))) return true;
  const SpaceId space{check(H5Aget_space(attribute.id.get()))};
  return H5Sget_simple_extent_type(space.get()) != H5S_NULL &&
         H5Sget_simple_extent_npoints(space.get()) == 1;
}

/// Opens a scalar attribute whose type is of the class asked for.
OpenAttribute open_scalar(hid_t owner, const std::string& name, H5T_class_t wanted) {
  // Asking first whether it is there would look it up twice, a thousand times a file.
  const hid_t opened = H5Aopen(owner, name.c_str(), H5P_DEFAULT);
  if (opened < 0) {
    const bool there = check(H5Aexists(owner, name.c_str())) > 0;
    throw Hdf5Error("attribute '" + name + (there ? "' cannot be opened" : "' is missing"));
  }
  OpenAttribute attribute;
  attribute.id = AttributeId{opened};
  attribute.type = TypeId{check(H5Aget_type(attribute.id.get()))};
  if (H5Tget_class(attribute.type.get()) != wanted || !is_scalar(attribute)) {
    throw Hdf5Error("attribute '" + name + "' has another type than it should");
  }
  return attribute;
}

template <class T>
T read_scalar(hid_t owner, const std::string& name, H5T_class_t wanted, hid_t memory_type) {
  const OpenAttribute attribute = open_scalar(owner, name, wanted);
  T value{};
  check(H5Aread(attribute.id.get(), memory_type, &value));
  return value;
}

struct HeapTextFree {
  void operator()(char* text) const noexcept { H5free_memory(text); }
};

herr_t append_name(hid_t /*owner*/, const char* name, const H5A_info_t* /*info*/,
                   void* names) noexcept {
  try {
    static_cast<std::vector<std::string>*>(names)->push_back(name);
  } catch (...) {
    return -1;
  }
  return 0;
}

}  // namespace

bool Group::has_attribute(const std::string& name) const {
  return check(H5Aexists(id_.get(), name.c_str())) > 0;
}

std::vector<std::string> Group::attribute_names() const {
  std::vector<std::string> names;
  hsize_t position = 0;
  check(H5Aiterate2(id_.get(), H5_INDEX_NAME, H5_ITER_INC, &position, append_name, &names));
  return names;
}

void Group::set(const std::string& name, std::string_view text) {
  const std::string value = valid_utf8(text);
  const char* pointer = value.c_str();
  const TypeId type = any_text_type();
  write_scalar(id_.get(), name, type.get(), type.get(), &pointer);
}

void Group::set(const std::string& name, std::int64_t number) {
  write_scalar(id_.get(), name, H5T_STD_I64LE, H5T_NATIVE_INT64, &number);
}

void Group::set(const std::string& name, std::uint64_t number) {
  write_scalar(id_.get(), name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &number);
}

void Group::set(const std::string& name, double number) {
  write_scalar(id_.get(), name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &number);
}

void Group::set_flag(const std::string& name, bool value) {
  const TypeId type = flag_type();
  const std::int8_t code = value ? 1 : 0;
  write_scalar(id_.get(), name, type.get(), type.get(), &code);
}

std::string Group::text(const std::string& name) const {
  const OpenAttribute attribute = open_scalar(id_.get(), name, H5T_STRING);
  if (check(H5Tis_variable_str(attribute.type.get())) > 0) {
    char* pointer = nullptr;
    check(H5Aread(attribute.id.get(), attribute.type.get(), static_cast<void*>(&pointer)));
    const std::unique_ptr<char, HeapTextFree> owned{pointer};
    return valid_utf8(owned == nullptr ? "" : owned.get());
  }
  const std::size_t length = size_of_type(attribute.type.get());
  if (length > max_text || length > H5Aget_storage_size(attribute.id.get())) {
    throw Hdf5Error("attribute '" + name + "' claims more text than there is");
  }
  std::string value(length, '\0');
  check(H5Aread(attribute.id.get(), attribute.type.get(), value.data()));
  return valid_utf8(value.substr(0, std::min(value.find('\0'), value.size())));
}

std::int64_t Group::integer(const std::string& name) const {
  return read_scalar<std::int64_t>(id_.get(), name, H5T_INTEGER, H5T_NATIVE_INT64);
}

std::uint64_t Group::natural(const std::string& name) const {
  return read_scalar<std::uint64_t>(id_.get(), name, H5T_INTEGER, H5T_NATIVE_UINT64);
}

double Group::real(const std::string& name) const {
  return read_scalar<double>(id_.get(), name, H5T_FLOAT, H5T_NATIVE_DOUBLE);
}

bool Group::flag(const std::string& name) const {
  const TypeId type = flag_type();
  return read_scalar<std::int8_t>(id_.get(), name, H5T_ENUM, type.get()) == 1;
}

}  // namespace isoscale::results::hdf5
