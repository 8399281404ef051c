// Attrs are the non-tensor arguments of an op: a small trivially copyable struct that lists its
// fields once. Hashing, comparing, printing and parsing are derived from that list.
//
//   struct SoftmaxAttrs {
//     int64_t dim = -1;
//     static constexpr auto fields() { return std::tuple(key_field("dim", &SoftmaxAttrs::dim)); }
//   };
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "core/dtype.h"
#include "core/hash.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/scalar.h"
#include "core/shape.h"

namespace flow {

// One field of an attrs struct. A key field takes part in every decision (shape, SBP, kernel). A
// value field, such as a learning rate or the start of a slice, reaches only the kernel as long as
// all inputs are local, so that a new value does not need a new decision. With global inputs every
// field takes part in the decision.
template <class Attrs, class T>
struct AttrField {
  const char* name;
  T Attrs::*member;
  bool is_key;
};

template <class Attrs, class T>
constexpr AttrField<Attrs, T> key_field(const char* name, T Attrs::*member) {
  return {name, member, true};
}

template <class Attrs, class T>
constexpr AttrField<Attrs, T> value_field(const char* name, T Attrs::*member) {
  return {name, member, false};
}

// The type-erased operations on one attrs type.
struct AttrsDef {
  size_t size;
  size_t (*hash)(const void* attrs, bool all_fields);
  bool (*equal)(const void* a, const void* b, bool all_fields);
  // "dim=-1, keepdim=true"; empty for no fields.
  std::string (*to_string)(const void* attrs);
  // The inverse of to_string: writes an attrs struct of `size` bytes to `target`. Throws
  // InvalidArgument.
  void (*parse)(std::string_view text, void* target);
};

// The size of the largest attrs struct; autograd nodes and calls store attrs inline up to this
// size.
inline constexpr size_t kMaxAttrsBytes = 256;

namespace internal {

inline void hash_field(Hasher& h, bool v) {
  h.add(uint64_t{v});
}

inline void hash_field(Hasher& h, int64_t v) {
  h.add(static_cast<uint64_t>(v));
}

inline void hash_field(Hasher& h, double v) {
  h.add(std::bit_cast<uint64_t>(v));
}

inline void hash_field(Hasher& h, DType v) {
  h.add(static_cast<uint64_t>(v));
}

inline void hash_field(Hasher& h, DeviceType v) {
  h.add(static_cast<uint64_t>(v));
}

inline void hash_field(Hasher& h, const Scalar& v) {
  h.add(v.bits() + static_cast<uint64_t>(v.kind()));
}

inline void hash_field(Hasher& h, const Shape& v) {
  for (const int64_t d : v)
    h.add(static_cast<uint64_t>(d));
  h.add(static_cast<uint64_t>(v.size()));
}

inline void hash_field(Hasher& h, const Placement& v) {
  h.add(v.id());
}

inline void hash_field(Hasher& h, const NdSbp& v) {
  for (const Sbp& s : v) {
    h.add(static_cast<uint64_t>(s.kind()) * 16 + static_cast<uint64_t>(s.dim()));
  }
}

template <size_t N>
void hash_field(Hasher& h, const std::array<int64_t, N>& v) {
  for (const int64_t d : v)
    h.add(static_cast<uint64_t>(d));
}

template <class T>
void hash_field(Hasher& h, const std::optional<T>& v) {
  h.add(uint64_t{v.has_value()});
  if (v) hash_field(h, *v);
}
template <class T>
requires std::is_enum_v<T>

void hash_field(Hasher& h, T v) {
  h.add(static_cast<uint64_t>(v));
}

// Compares bits, so NaN equals itself: equal attrs mean the same call.
inline bool equal_field(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

template <class T>
bool equal_field(const T& a, const T& b) {
  return a == b;
}

// The text of one field; a list prints as [1, 2]. Defined in attrs.cpp.
std::string field_to_string(bool v);
std::string field_to_string(int64_t v);
std::string field_to_string(double v);
std::string field_to_string(DType v);
std::string field_to_string(DeviceType v);
std::string field_to_string(const Scalar& v);
std::string field_to_string(const Shape& v);
std::string field_to_string(const Placement& v);
std::string field_to_string(const NdSbp& v);
std::string list_to_string(const int64_t* values, size_t count);
void parse_field(std::string_view text, bool& v);
void parse_field(std::string_view text, int64_t& v);
void parse_field(std::string_view text, double& v);
void parse_field(std::string_view text, DType& v);
void parse_field(std::string_view text, DeviceType& v);
void parse_field(std::string_view text, Scalar& v);
void parse_field(std::string_view text, Shape& v);
void parse_field(std::string_view text, Placement& v);
void parse_field(std::string_view text, NdSbp& v);
void parse_list(std::string_view text, int64_t* values, size_t count);

template <size_t N>
std::string field_to_string(const std::array<int64_t, N>& v) {
  return list_to_string(v.data(), N);
}

template <size_t N>
void parse_field(std::string_view text, std::array<int64_t, N>& v) {
  parse_list(text, v.data(), N);
}

template <class T>
std::string field_to_string(const std::optional<T>& v) {
  return v ? field_to_string(*v) : "none";
}

template <class T>
void parse_field(std::string_view text, std::optional<T>& v) {
  v.reset();
  if (text != "none") parse_field(text, v.emplace());
}
template <class T>

requires std::is_enum_v<T> std::string field_to_string(T v) {
  return field_to_string(static_cast<int64_t>(v));
}
template <class T>
requires std::is_enum_v<T>

void parse_field(std::string_view text, T& v) {
  int64_t number = 0;
  parse_field(text, number);
  v = static_cast<T>(number);
}

// The text of the field `name` in "a=1, b=[2, 3]"; throws InvalidArgument if it is missing.
std::string_view find_field(std::string_view text, std::string_view name);

template <class Attrs>
size_t hash_attrs(const void* attrs, bool all_fields) {
  const auto& a = *static_cast<const Attrs*>(attrs);
  Hasher hasher;
  std::apply(
      [&](const auto&... field) {
        ((field.is_key || all_fields ? hash_field(hasher, a.*field.member) : void()), ...);
      },
      Attrs::fields());
  return hasher.value();
}

template <class Attrs>
bool equal_attrs(const void* left, const void* right, bool all_fields) {
  const auto& a = *static_cast<const Attrs*>(left);
  const auto& b = *static_cast<const Attrs*>(right);
  return std::apply(
      [&](const auto&... field) {
        return ((!(field.is_key || all_fields) || equal_field(a.*field.member, b.*field.member)) &&
                ...);
      },
      Attrs::fields());
}

template <class Attrs>
std::string attrs_to_string(const void* attrs) {
  const auto& a = *static_cast<const Attrs*>(attrs);
  std::string text;
  std::apply(
      [&](const auto&... field) {
        ((text += (text.empty() ? "" : ", "), text += field.name, text += '=',
          text += field_to_string(a.*field.member)),
         ...);
      },
      Attrs::fields());
  return text;
}

template <class Attrs>
void parse_attrs(std::string_view text, void* target) {
  auto& a = *new (target) Attrs();
  std::apply(
      [&](const auto&... field) {
        (parse_field(find_field(text, field.name), a.*field.member), ...);
      },
      Attrs::fields());
}

template <class Attrs>
inline constexpr AttrsDef kAttrsDef = {
    .size = sizeof(Attrs),
    .hash = hash_attrs<Attrs>,
    .equal = equal_attrs<Attrs>,
    .to_string = attrs_to_string<Attrs>,
    .parse = parse_attrs<Attrs>,
};

}  // namespace internal

// Usable in constant expressions, so that op definitions need no code at start-up.
template <class Attrs>
constexpr const AttrsDef* attrs_def() {
  static_assert(std::is_trivially_copyable_v<Attrs> && std::is_trivially_destructible_v<Attrs>);
  static_assert(sizeof(Attrs) <= kMaxAttrsBytes && alignof(Attrs) <= alignof(std::max_align_t));
  return &internal::kAttrsDef<Attrs>;
}

}  // namespace flow
