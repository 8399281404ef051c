#include "nn/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/generator.h"

namespace flow::data {

namespace {

struct Point {
  double x, y;  // in [0, 1]²; y points down
};

using Stroke = std::vector<Point>;

// An arc of an ellipse as a polyline. Angles are in turns: 0 points right, and positive angles turn
// clockwise (y points down).
Stroke arc(Point centre, double rx, double ry, double from, double to) {
  Stroke stroke;
  constexpr int kSteps = 16;
  for (int i = 0; i <= kSteps; ++i) {
    const double angle = 2 * M_PI * (from + (to - from) * i / kSteps);
    stroke.push_back({centre.x + rx * std::cos(angle), centre.y + ry * std::sin(angle)});
  }
  return stroke;
}

std::vector<Stroke> strokes_of(int digit, bool variant) {
  switch (digit) {
    case 0:
      return {arc({.5, .5}, .28, .42, 0, 1)};
    case 1:
      return variant ? std::vector<Stroke>{{{.5, .08}, {.5, .92}}}
                     : std::vector<Stroke>{{{.32, .25}, {.52, .08}, {.52, .92}}};
    case 2:
      return {arc({.5, .3}, .27, .22, .5, 1.1), {{.7, .45}, {.22, .92}, {.78, .92}}};
    case 3:
      return {arc({.46, .29}, .26, .21, .55, 1.25), arc({.46, .71}, .29, .22, .75, 1.45)};
    case 4:
      return variant
                 ? std::vector<Stroke>{{{.3, .1}, {.24, .55}, {.78, .55}}, {{.64, .1}, {.64, .92}}}
                 : std::vector<Stroke>{{{.6, .92}, {.6, .08}, {.2, .65}, {.82, .65}}};
    case 5:
      return {{{.74, .08}, {.3, .08}, {.28, .45}}, arc({.48, .67}, .27, .25, .65, 1.4)};
    case 6:
      return {arc({.5, .68}, .26, .24, 0, 1), {{.66, .1}, {.4, .3}, {.25, .62}}};
    case 7:
      return variant
                 ? std::vector<Stroke>{{{.22, .1}, {.78, .1}, {.42, .92}}, {{.34, .5}, {.7, .5}}}
                 : std::vector<Stroke>{{{.22, .1}, {.78, .1}, {.42, .92}}};
    case 8:
      return {arc({.5, .28}, .22, .2, 0, 1), arc({.5, .71}, .27, .22, 0, 1)};
    default:
      return {arc({.5, .32}, .25, .24, 0, 1), {{.75, .34}, {.68, .65}, {.56, .92}}};
  }
}

// The random numbers of one image.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t image) : random_{.seed = seed, .stream = image} {}

  double uniform(double low, double high) {
    const auto lanes = philox(random_, block_++);
    return low + (high - low) * uniform_double(lanes[0], lanes[1]);
  }

 private:
  RandomStream random_;
  uint64_t block_ = 0;
};

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length = dx * dx + dy * dy;
  double t = length > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length : 0;
  t = std::clamp(t, 0.0, 1.0);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// Ink at p: 1 within the half-width `radius` of a stroke, 0 outside, with a soft edge between.
double ink(Point p, const std::vector<Stroke>& strokes, double radius, double softness) {
  double nearest = 1e9;
  for (const Stroke& stroke : strokes) {
    for (size_t i = 1; i < stroke.size(); ++i) {
      nearest = std::min(nearest, distance_to_segment(p, stroke[i - 1], stroke[i]));
    }
  }
  return std::clamp((radius - nearest) / softness + 0.5, 0.0, 1.0);
}

void draw(int digit, Draws& draws, int64_t side, uint8_t* pixels) {
  std::vector<Stroke> strokes = strokes_of(digit, draws.uniform(0, 1) < 0.5);
  const double angle = draws.uniform(-0.45, 0.45), shear = draws.uniform(-0.4, 0.4);
  const double scale_x = draws.uniform(0.5, 0.95), scale_y = draws.uniform(0.6, 0.95);
  const double shift_x = draws.uniform(-0.14, 0.14), shift_y = draws.uniform(-0.12, 0.12);
  const double bend = draws.uniform(-0.12, 0.12), phase = draws.uniform(0, 6.28);
  for (Stroke& stroke : strokes) {
    for (Point& point : stroke) {
      double x = (point.x - 0.5) * scale_x, y = (point.y - 0.5) * scale_y;
      x += shear * y + bend * std::sin(5 * y + phase);
      const double turned = x * std::cos(angle) - y * std::sin(angle);
      y = x * std::sin(angle) + y * std::cos(angle);
      point = {turned + 0.5 + shift_x, y + 0.5 + shift_y};
    }
  }
  // A short distracting stroke that belongs to no digit.
  const Point start{draws.uniform(0, 1), draws.uniform(0, 1)};
  strokes.push_back({start, {start.x + draws.uniform(-.2, .2), start.y + draws.uniform(-.2, .2)}});
  const double radius = draws.uniform(0.028, 0.07), softness = draws.uniform(0.03, 0.08);
  const double brightness = draws.uniform(0.6, 1), noise = draws.uniform(0.02, 0.14);
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t column = 0; column < side; ++column) {
      const Point p{(static_cast<double>(column) + .5) / static_cast<double>(side),
                    (static_cast<double>(row) + .5) / static_cast<double>(side)};
      const double value =
          brightness * ink(p, strokes, radius, softness) + draws.uniform(-noise, noise);
      *pixels++ = static_cast<uint8_t>(std::clamp(std::lround(value * 255), 0L, 255L));
    }
  }
}

}  // namespace

Digits generate_digits(int64_t count, uint64_t seed) {
  Digits digits;
  digits.count = count;
  const int64_t image = digits.height * digits.width;
  digits.pixels.resize(static_cast<size_t>(count * image));
  for (int64_t i = 0; i < count; ++i) {
    Draws draws(seed, static_cast<uint64_t>(i));
    const int digit = static_cast<int>(draws.uniform(0, 10));
    digits.labels.push_back(static_cast<uint8_t>(digit));
    draw(digit, draws, digits.height, digits.pixels.data() + i * image);
  }
  return digits;
}

}  // namespace flow::data
